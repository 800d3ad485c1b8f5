package pipeline

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/fragment"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// forgetEvery is how often datagrams that do not become complete are looked for.
const forgetEvery = int64(100e6)

// fragment settles a fragment: the first one of a datagram as if it were whole, the others
// as the first. One that comes before the first is held.
func (pl *Pipeline) fragment(o packet.Outcome) reason.Reason {
	v := &pl.visit
	piece, ok := v.piece(o)
	if !ok {
		return pl.classify(o)
	}
	k, now := v.datagram(), v.ns
	switch {
	case o == packet.Truncated:
		// RFC 1858 and RFC 7112: it could not be told whose it is, and a second one could
		// say something else.
		pl.fragments.Refuse(&k, v.in.ID, reason.FragmentTiny, now, &pl.lost)
		return reason.FragmentTiny
	case o == packet.Invalid || piece.To <= piece.From || !piece.Last && piece.To%8 != 0:
		pl.fragments.Refuse(&k, v.in.ID, reason.Malformed, now, &pl.lost)
		return reason.Malformed
	}
	packet.WritePunt(v.frame, v.punt) // what is held has to say where it came from
	meeting, r := pl.fragments.Meet(&k, v.in.ID, piece, v.frame, now, &pl.fate, &pl.lost)
	switch meeting {
	case fragment.Decides:
		return pl.begin(&k, pl.whole(o))
	case fragment.Follows:
		return pl.followFirst()
	case fragment.Held:
		v.trace.note("fragment", "held until the first one of its datagram comes")
		v.held = true
	}
	return r
}

// piece is what a fragment carries of its datagram. false: it is none of a datagram that
// could be a flow's.
func (v *visit) piece(o packet.Outcome) (piece fragment.Piece, ok bool) {
	p := &v.packet
	from, next := p.Part()
	if p.Tagged || !mayHavePorts(p.Family, next) {
		return piece, false
	}
	// Parse has seen to it that no fragment ends behind 65,535.
	length := max(0, p.End-from)
	piece = fragment.Piece{From: p.Offset, To: p.Offset + uint16(length), Last: !p.More}
	if p.Offset == 0 && o == packet.OK {
		piece.Mark = binary.LittleEndian.Uint64(p.Frame[p.L4:])
	}
	return piece, true
}

// mayHavePorts reports whether a whole packet may have ports by what its IP header says is
// in it. Of IPv6 the transport may lie behind further extension headers, which only the
// first fragment shows.
func mayHavePorts(family, next uint8) bool {
	switch next {
	case packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP:
		return true
	}
	return family == 6 && packet.IsExtension(next)
}

// datagram names the datagram of the fragment in hand.
func (v *visit) datagram() fragment.Key {
	p := &v.packet
	k := fragment.Key{
		Src: p.Src, Dst: p.Dst, Network: v.in.Network, ID: p.ID, Port: v.in.ID, Egress: v.punt.Egress,
	}
	if p.Family == 4 {
		k.Protocol = p.Protocol
	}
	if v.in.Kind == table.PortUplink && !v.punt.Egress {
		k.Port = fragment.AnyUplink
	}
	return k
}

// begin notes what became of a first fragment, and takes over those that waited for it.
func (pl *Pipeline) begin(k *fragment.Key, r reason.Reason) reason.Reason {
	fate := &pl.fate
	*fate = fragment.Fate{Reason: reason.Fragment}
	switch r.Class() {
	case reason.ClassForward:
		fate.Reason, fate.Flow = reason.Established, pl.flow
		if pl.flow.Flags&conntrack.FlagReply != 0 {
			fate.Reason = reason.Reply
		}
		to := &fate.Flow.Rewrite
		fate.ID = pl.fragments.Idents.Next(&to.Src, &to.Dst, pl.visit.packet.Protocol)
		nat.Renumber(&pl.visit.packet, fate.ID)
	case reason.ClassPass:
		fate.Reason = r
	}
	pl.released = pl.fragments.Decide(k, fate, &pl.lost)
	return r
}

// followFirst does to a later fragment what was done to the first one.
func (pl *Pipeline) followFirst() reason.Reason {
	v, fate := &pl.visit, &pl.fate
	v.trace.note("fragment", "follows the first one of its datagram")
	if fate.Reason.Class() != reason.ClassForward {
		return fate.Reason
	}
	pl.flow = fate.Flow
	v.out = v.tables.Port(pl.flow.Target)
	if v.out == nil {
		return reason.NoTarget
	}
	if r := pl.forward(); r != reason.None {
		return r
	}
	nat.Renumber(&v.packet, fate.ID)
	return fate.Reason
}

// Next gives the next of the fragments into which the packet in hand was cut, or decides about
// the next of those that were held for the one in hand: to be called while the last Result
// says More. It writes the fragment into frame, which gives its capacity, and returns how
// long it was when it came.
func (pl *Pipeline) Next(tables *table.Snapshot, frame []byte, now int64, trace *Trace) (length int, r Result) {
	frame = frame[:cap(frame)]
	if pl.cut.Any() {
		return pl.nextPiece(frame, trace)
	}
	length = pl.released.Next(frame)
	if length == 0 || length > len(frame) {
		return length, Result{Reason: reason.TooBig, More: pl.more()}
	}
	punt, _ := packet.ReadPunt(frame)
	pl.enterWith(tables, frame[:length], punt, now, trace)
	return length, pl.result(pl.catchUp())
}

func (pl *Pipeline) catchUp() reason.Reason {
	v := &pl.visit
	if r := v.enter(); r != reason.None {
		return r
	}
	v.parse()
	if !v.packet.Fragment {
		return reason.Malformed // it was one when it was held
	}
	return pl.followFirst()
}

// Abandon drops the fragments that Next would have returned, for want of frames.
func (pl *Pipeline) Abandon() {
	pl.released.Drop(reason.RingFull, &pl.lost)
	frames, bytes := pl.cut.Rest()
	pl.lost.Add(reason.RingFull, frames, bytes)
	pl.cut.Forget()
}

// Lost calls count for the fragments that were held, or cut off, and are dropped by now.
func (pl *Pipeline) Lost(now int64, count func(r reason.Reason, frames, bytes int)) {
	if now-pl.forgot >= forgetEvery || now < pl.forgot {
		pl.forgot = now
		pl.fragments.Expire(now, &pl.lost)
	}
	pl.lost.Take(count)
}
