package traffic

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"lace-cni.io/lace/fastpath/packet/frame"
)

// Fragments made by hand are those of the datagram, whatever their order.
func TestShuffledFragmentsAreTheDatagram(t *testing.T) {
	payload := datagram(8000, shuffledSequence)
	for _, ends := range [][2]string{{"10.0.0.1:4000", "10.0.0.2:80"}, {"[fd00::1]:4000", "[fd00::2]:80"}} {
		from, to := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		kind := []byte{0x86, 0xdd}
		if from.Addr().Is4() {
			kind = []byte{8, 0}
		}
		all := pieces(from, to, payload)
		mixed := disorder(slices.Clone(all))
		if len(mixed) <= len(all) {
			t.Errorf("%d frames of %d fragments: want some twice", len(mixed), len(all))
		}
		seen := map[*byte]bool{}
		var parts []frame.Part
		for i, p := range mixed {
			if seen[&p[0]] && i == len(mixed)-1 {
				t.Error("the last one is a copy")
			}
			if seen[&p[0]] {
				continue
			}
			seen[&p[0]] = true
			part, err := frame.ReadPart(slices.Concat(make([]byte, 12), kind, p))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		joined, err := frame.Join(parts)
		if err != nil {
			t.Fatal(err)
		}
		f, err := frame.Decode(joined)
		if err != nil || frame.Check(joined) != nil || f.Src != from || f.Dst != to || !bytes.Equal(f.Payload, payload) {
			t.Errorf("%v, %v: from %s to %s", err, frame.Check(joined), f.Src, f.Dst)
		}
	}
}
