package pipeline

import (
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// conclude makes the frame ready for what the reason's class demands: the trunk's
// header, or the answer in its place. It returns the reason that holds in the end, which
// is another one where an answer is due and cannot be given.
func (pl *Pipeline) conclude(r reason.Reason) reason.Reason {
	v := &pl.visit
	r = pl.complain(r)
	switch r.Class() {
	case reason.ClassForward:
		v.length = pl.leave()
	case reason.ClassPass:
		v.pass()
	case reason.ClassAnswer:
		if other := pl.answer(r); other != reason.None {
			return other
		}
	default:
		return r
	}
	if !packet.WriteInject(v.frame, v.how, v.out.ID) {
		return reason.Malformed
	}
	return r
}

// pass gives the frame back whence it came, all bytes of it.
func (v *visit) pass() {
	v.how, v.out, v.length = packet.Stack, v.in, len(v.frame)
	if v.punt.Egress {
		v.how = packet.Resume
	}
	v.trace.delivery(v.how, v.out)
}

// answer tells the sender, out of the port where it is: a reset to TCP (RFC 9293,
// section 3.5.2), an ICMP error to everything else. None: the answer is written.
func (pl *Pipeline) answer(r reason.Reason) reason.Reason {
	v := &pl.visit
	p := &v.packet
	if !refusedOnTheWay(r) && p.Protocol == packet.ProtocolTCP && p.Flags&packet.FlagRST != 0 {
		// A reset is never answered, and there is nothing left that it could end.
		return reason.StrayReset
	}
	mtu := v.mtu()
	v.how, v.out = packet.Direct, v.in
	if v.punt.Egress {
		v.out = v.tables.Port(table.HostPort)
		if v.out == nil {
			return reason.NoTarget
		}
	}
	if !pl.limit.take(v.ns, v.tables.Settings().AnswersPerSecond) {
		return reason.RateLimited
	}
	v.length = pl.write(r, mtu, min(cap(v.frame), len(pl.scratch)))
	if v.length == 0 {
		// The source is no address that could be answered.
		return untold(r)
	}
	v.frame = v.frame[:v.length]
	copy(v.frame, pl.scratch[:v.length])
	v.trace.answered(r, p, v.out)
	return reason.None
}

// write puts the answer together beside the packet that it quotes.
func (pl *Pipeline) write(r reason.Reason, mtu uint32, room int) int {
	p, dst := &pl.visit.packet, pl.scratch[:room]
	switch {
	case r == reason.PacketTooBig:
		return packet.WriteTooBig(dst, p, pl.router(), mtu)
	case r == reason.TimeExceeded:
		return packet.WriteTimeExceeded(dst, p, pl.router())
	case p.Protocol == packet.ProtocolTCP:
		return packet.WriteReset(dst, p)
	}
	return packet.WriteUnreachable(dst, p)
}
