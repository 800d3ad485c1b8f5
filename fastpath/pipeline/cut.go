package pipeline

import (
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// cut is what is left of a packet that is too long for its way out and that routers may cut:
// the first fragment is in the packet's own frame, the others are fetched by Next.
type cut struct {
	packet.Cutter
	how  packet.Inject
	port uint16
}

// leave gives the length of the frame of the forwarded packet in hand, which is ready but
// for the trunk's header; of its first fragment when it has to be cut.
func (pl *Pipeline) leave() int {
	v := &pl.visit
	if !v.cuts {
		// Padding behind the packet has no meaning and is not sent on.
		return v.packet.End
	}
	p, c := &v.packet, &pl.cut
	id := uint32(0)
	if !p.Fragment {
		// As of every translated datagram; see fragment.Idents.
		id = pl.fragments.Idents.Next(&p.Src, &p.Dst, p.Protocol)
	}
	length := c.Begin(p, v.out.MTU, uint16(id))
	c.how, c.port = v.how, v.out.ID
	v.trace.note("cut", "too long for the way out, and its sender lets routers cut it: it leaves in fragments")
	return length
}

// nextPiece writes the next fragment of the packet that was cut.
func (pl *Pipeline) nextPiece(frame []byte, trace *Trace) (length int, r Result) {
	c := &pl.cut
	length = c.Next(frame)
	r = Result{Reason: reason.TooBig}
	if length <= len(frame) && packet.WriteInject(frame[:length], c.how, c.port) {
		r = Result{Verdict: Forward, Reason: reason.Cut, Inject: c.how, Port: c.port, Len: length}
	}
	r.More = pl.more()
	trace.verdict(r.Reason)
	return length, r
}

// more reports whether frames are to be fetched by Next.
func (pl *Pipeline) more() bool { return pl.cut.Any() || pl.released.Any() }
