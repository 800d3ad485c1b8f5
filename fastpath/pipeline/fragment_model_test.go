package pipeline

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/fragment"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// sent is one datagram of the model: what is sent, and what a translator of whole datagrams
// would have made of it.
type sent struct {
	whole    []byte
	punt     packet.Punt
	comes    [][]byte
	complete bool   // every byte comes, and no fragment overlaps before
	odd      []byte // a fragment that overlaps others
}

// TestFragmentsAgainstModel: datagrams of several clients at several ports, cut, shuffled
// among each other, repeated, overlapped and with pieces missing. What leaves must be what
// putting each together and translating it whole would give: every complete one once, no
// other, and no identification twice.
func TestFragmentsAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		for _, family := range []int{4, 6} {
			r := rand.New(rand.NewPCG(seed, uint64(family)))
			w := newWorld(t, family, packet.ProtocolUDP)
			w.pipeline.fragments, _ = fragment.New(fragment.Default)
			w.serve("vip", "remote:8080")
			w.serve("vip2", "remote:8080")
			var all []*sent
			type arrival struct {
				of *sent
				b  []byte
			}
			var line []arrival
			for i := range 12 {
				s := w.randomDatagram(r, i)
				all = append(all, s)
				for _, b := range s.comes {
					line = append(line, arrival{s, b})
				}
			}
			r.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
			for _, a := range line {
				// A fragment that overlaps harms nobody when all the others have gone.
				a.of.complete = a.of.complete && a.of.odd == nil || a.of.odd != nil && &a.b[0] == &a.of.odd[0]
			}
			parts := map[frame.Datagram][]frame.Part{}
			for _, a := range line {
				_, out := w.arrive(a.b, a.of.punt)
				for _, o := range out {
					p, err := frame.ReadPart(o.bytes)
					if err != nil {
						t.Fatal(err)
					}
					parts[p.Of] = append(parts[p.Of], p)
				}
			}
			got := map[string]int{}
			for _, list := range parts {
				joined, err := frame.Join(list)
				if err != nil {
					continue
				}
				if err := frame.Check(joined); err != nil {
					t.Fatalf("seed %d, IPv%d: fragments of different datagrams left as one: %v", seed, family, err)
				}
				f, _ := frame.Decode(joined)
				got[f.Dst.String()+" "+string(f.Payload)]++
			}
			for i, s := range all {
				f, _ := frame.Decode(s.whole)
				id := w.endpoint("remote:8080").String() + " " + string(f.Payload)
				if n := got[id]; (n == 1) != s.complete || n > 1 {
					t.Errorf("seed %d, IPv%d, datagram %d (complete: %v) left %d times", seed, family, i, s.complete, n)
				}
				delete(got, id)
			}
			if len(got) > 0 {
				t.Errorf("seed %d, IPv%d: %d datagrams left that nobody sent", seed, family, len(got))
			}
		}
	}
}

// randomDatagram is one of a few senders, all of whom use the same identifications.
func (w *world) randomDatagram(r *rand.Rand, i int) *sent {
	from := []string{"client", "other", "outside", "web"}[i%4]
	vip := []string{"vip:80", "vip2:80"}[i/4%2]
	id := uint32(7 + i/8)
	payload := fmt.Sprintf("datagram %d ", i)
	for n := 500 + r.IntN(3000); len(payload) < n; {
		payload += string(rune('a' + r.IntN(26)))
	}
	s := &sent{complete: true}
	s.whole = frame.UDP(w.endpoint(fmt.Sprintf("%s:%d", from, 4000+i)).String(), w.endpoint(vip).String(), payload).Bytes()
	s.punt = w.punt(&step{sends: from + ":1"})
	s.comes = frame.Cut(s.whole, id, 100+r.IntN(400))
	cut := len(s.comes)
	switch r.IntN(4) {
	case 0: // repeated
		for range 1 + r.IntN(3) {
			s.comes = append(s.comes, s.comes[1+r.IntN(cut-1)])
		}
		// A copy that comes when all is complete begins anew, and has nothing to go with.
	case 1: // one missing
		n := r.IntN(cut)
		s.comes = append(s.comes[:n:n], s.comes[n+1:]...)
		s.complete = false
	case 2: // one that overlaps
		s.odd = frame.Piece(s.whole, id, 8, 8*(2+r.IntN(20)), true)
		s.comes = append(s.comes, s.odd)
	}
	return s
}
