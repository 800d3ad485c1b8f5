package pipeline

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/reason"
)

// loss describes a packet that does not fit its way out; nothing of others. An answer may take
// its place in the frame.
func (v *visit) loss(decision reason.Reason) (h blackhole.Hole) {
	if decision != reason.TooBig || v.out == nil {
		return h
	}
	p := &v.packet
	h.Tuple = conntrack.Tuple{
		Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort, Protocol: p.Protocol, Network: v.in.Network,
	}
	h.In, h.Out, h.MTU, h.Longest, h.Seen = v.in.ID, v.out.ID, v.out.MTU, v.size(), v.ns
	return h
}

// lose notes what became of a packet that does not fit its way out.
func (pl *Pipeline) lose(r reason.Reason, h *blackhole.Hole) {
	switch {
	case h.Out == 0:
	case r == reason.PacketTooBig:
		pl.holes.Told(h)
	case r == reason.TooBig:
		pl.holes.Untold(h)
	}
}

// size is the length of the packet in hand by its own header: of one that is cut short only
// the beginning is here.
func (v *visit) size() uint32 {
	h := v.packet.Frame[v.packet.L3:]
	if v.packet.Family == 4 {
		return uint32(binary.BigEndian.Uint16(h[2:]))
	}
	return 40 + uint32(binary.BigEndian.Uint16(h[4:]))
}

// BlackHoles are the flows whose packets vanish for their length, as far as this pipeline has
// met them; changed says whether that is news since the last call. See blackhole.Watch.Holes.
func (pl *Pipeline) BlackHoles() (holes *[blackhole.Holes]blackhole.Hole, changed bool) {
	return pl.holes.Holes()
}
