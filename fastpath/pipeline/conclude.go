package pipeline

import (
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// conclude turns the reason into what the caller has to do, and writes the trunk header
// or the answer into the frame.
func (pl *Pipeline) conclude(r reason.Reason) Result {
	v := &pl.visit
	switch verdictOf(r) {
	case Forward:
		// Padding behind the packet has no meaning and is not sent on.
		return v.send(Forward, r, v.packet.End)
	case Pass:
		v.how, v.out = packet.Stack, v.in
		if v.punt.Egress {
			v.how = packet.Resume
		}
		v.trace.delivery(v.how, v.out)
		return v.send(Pass, r, len(v.frame))
	case Answer:
		return pl.answer(r)
	}
	return Result{Verdict: Drop, Reason: r}
}

// send marks the frame for the program that delivers it.
func (v *visit) send(verdict Verdict, r reason.Reason, length int) Result {
	if !packet.WriteInject(v.frame, v.how, v.out.ID) {
		return Result{Verdict: Drop, Reason: reason.Malformed}
	}
	return Result{Verdict: verdict, Reason: r, Inject: v.how, Port: v.out.ID, Len: length}
}

// answer tells the sender, out of the port where it is: a reset to TCP (RFC 9293,
// section 3.5.2), a port unreachable to everything else. It comes from the VIP.
func (pl *Pipeline) answer(r reason.Reason) Result {
	v := &pl.visit
	p := &v.packet
	if p.Protocol == packet.ProtocolTCP && p.Flags&packet.FlagRST != 0 {
		// A reset is never answered, and there is nothing left that it could end.
		return Result{Verdict: Drop, Reason: reason.FlowEnded}
	}
	if !pl.limit.take(v.ns, v.tables.Settings().AnswersPerSecond) {
		return Result{Verdict: Drop, Reason: reason.RateLimited}
	}
	n := pl.write(min(cap(v.frame), len(pl.scratch)))
	if n == 0 {
		// The source is no address that could be answered.
		return Result{Verdict: Drop, Reason: reason.Malformed}
	}
	v.frame = v.frame[:n]
	copy(v.frame, pl.scratch[:n])
	v.how, v.out = packet.Direct, v.in
	if v.punt.Egress {
		v.out = v.tables.Port(table.HostPort)
		if v.out == nil {
			return Result{Verdict: Drop, Reason: reason.NoTarget}
		}
	}
	v.trace.delivery(v.how, v.out)
	return v.send(Answer, r, n)
}

// write puts the answer together beside the packet that it quotes.
func (pl *Pipeline) write(room int) int {
	if pl.visit.packet.Protocol == packet.ProtocolTCP {
		return packet.WriteReset(pl.scratch[:room], &pl.visit.packet)
	}
	return packet.WriteUnreachable(pl.scratch[:room], &pl.visit.packet)
}
