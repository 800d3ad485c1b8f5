package counter

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/packet"
)

// holeWords is the size of a black hole in the file.
const holeWords = 9

// Holes shows the black holes that the worker knows, from the next Write on.
func (b *Block) Holes(holes *[blackhole.Holes]blackhole.Hole) {
	words := b.file.words[b.file.shape.hole(b.index):]
	for i := range holes {
		writeHole(words[i*holeWords:(i+1)*holeWords], &holes[i])
	}
}

func writeHole(w []uint64, h *blackhole.Hole) {
	t, le := &h.Tuple, binary.LittleEndian
	w[0] = uint64(h.Kind) | uint64(t.Protocol)<<8 | uint64(h.In)<<16 | uint64(h.Out)<<32
	w[1] = uint64(t.SrcPort) | uint64(t.DstPort)<<16 | uint64(t.Network)<<32
	w[2] = uint64(h.MTU) | uint64(h.Longest)<<32
	w[3], w[4] = h.Packets, uint64(h.Seen)
	w[5], w[6] = le.Uint64(t.Src[:]), le.Uint64(t.Src[8:])
	w[7], w[8] = le.Uint64(t.Dst[:]), le.Uint64(t.Dst[8:])
}

// readHole takes whatever is there; a Kind that is not known is none.
func readHole(w []uint64) (h blackhole.Hole) {
	t, le := &h.Tuple, binary.LittleEndian
	if h.Kind = blackhole.Kind(w[0]); h.Kind >= blackhole.Kinds {
		h.Kind = blackhole.None
	}
	t.Protocol, h.In, h.Out = uint8(w[0]>>8), uint16(w[0]>>16), uint16(w[0]>>32)
	t.SrcPort, t.DstPort, t.Network = uint16(w[1]), uint16(w[1]>>16), packet.NetworkID(w[1]>>32)
	h.MTU, h.Longest = uint32(w[2]), uint32(w[2]>>32)
	h.Packets, h.Seen = w[3], int64(w[4])
	le.PutUint64(t.Src[:], w[5])
	le.PutUint64(t.Src[8:], w[6])
	le.PutUint64(t.Dst[:], w[7])
	le.PutUint64(t.Dst[8:], w[8])
	return h
}

func (r *Reader) holes() []blackhole.Hole {
	var all []blackhole.Hole
	for i := range r.shape.workers {
		for n := range r.shape.holes {
			at := r.shape.hole(i) + n*holeWords
			all = append(all, readHole(r.words[at:at+holeWords]))
		}
	}
	return blackhole.Merge(all)
}
