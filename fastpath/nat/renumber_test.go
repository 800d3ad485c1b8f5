package nat

import (
	"bytes"
	"encoding/binary"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// FuzzRenumber gives arbitrary packets another identification: fragments have it then, in the
// frame and in the packet, and a right header checksum stays right; nothing else changes,
// and nothing at all of whole packets.
func FuzzRenumber(f *testing.F) {
	for _, ends := range [][2]string{{"10.0.0.1:4000", "10.0.0.2:80"}, {"[fd00::1]:4000", "[fd00::2]:80"}} {
		whole := frame.UDP(ends[0], ends[1], "some bytes for two fragments")
		f.Add(whole.Bytes(), uint32(1))
		for _, b := range frame.Cut(whole.Bytes(), 7, 72) {
			f.Add(b, uint32(0xffff0000))
		}
	}
	behind := frame.UDP("[fd00::1]:4000", "[fd00::2]:80", "12345678")
	behind.More, behind.Extensions = true, []frame.Extension{{Type: 60, Body: []byte{1, 4, 0, 0, 0, 0}}}
	f.Add(behind.Bytes(), uint32(5))
	options := frame.UDP("10.0.0.1:4000", "10.0.0.2:80", "12345678")
	options.More, options.Options = true, []byte{0x94, 4, 0, 0}
	f.Add(options.Bytes(), uint32(5))
	f.Fuzz(func(t *testing.T, b []byte, id uint32) {
		b = bytes.Clone(b)
		before := bytes.Clone(b)
		var p packet.Packet
		if o := p.Parse(b); o != packet.OK && o != packet.NoPorts {
			return
		}
		good := frame.Check(b) == nil
		if Renumber(&p, id) != p.Fragment {
			t.Fatalf("renumbered %v, a fragment %v", !p.Fragment, p.Fragment)
		}
		if !p.Fragment {
			if !bytes.Equal(b, before) {
				t.Fatal("a whole packet was changed")
			}
			return
		}
		want, at := id, 0
		if p.Family == 6 {
			at = p.FragmentHeader()
		}
		mask := func(b []byte) []byte { b = bytes.Clone(b); clear(b[at+4 : at+8]); return b }
		if p.Family == 4 {
			want = id & 0xffff
			mask = func(b []byte) []byte {
				b = bytes.Clone(b)
				clear(b[p.L3+ip4ID : p.L3+ip4ID+2])
				clear(b[p.L3+ip4Check : p.L3+ip4Check+2])
				return b
			}
		}
		if !bytes.Equal(mask(b), mask(before)) {
			t.Fatalf("more than the identification changed:\n%x\n%x", before, b)
		}
		var q packet.Packet
		if q.Parse(b); q.ID != want || p.ID != want {
			t.Fatalf("identification %#x, in the packet %#x, want %#x", q.ID, p.ID, want)
		}
		if p.Family == 6 && binary.BigEndian.Uint32(b[at+4:]) != want {
			t.Fatal("the identification is elsewhere")
		}
		if err := frame.Check(b); good && err != nil {
			t.Fatalf("a good frame went bad: %v", err)
		}
	})
}
