package rings

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// forwarder receives frames, exchanges their addresses in place and transmits the same
// frames: what a worker does, without the decision.
type forwarder interface {
	fd() int             // for the XSKMAP
	received() int       // frames that wait in the RX ring
	forward(n int) error // forwards n waiting frames; all have left when it returns
}

// swap exchanges destination and source address.
func swap(f []byte) {
	_ = f[11]
	for i := range 6 {
		f[i], f[6+i] = f[6+i], f[i]
	}
}

// framesPerRound is about how many frames are averaged for one figure of one round; small
// bursts, which cost more, get a quarter.
const framesPerRound = 16384

// measure forwards bursts on a track and returns the time per frame from the RX ring to
// the last completion. Making the frames is not part of it.
func measure(b *testing.B, t *track, f forwarder, burst, length int) time.Duration {
	b.Helper()
	before := t.back()
	var spent time.Duration
	bursts := max(framesPerRound/burst/4, framesPerRound/1024)
	for range bursts {
		t.generate(burst, length)
		if err := await("the frames were received", func() bool { return f.received() == burst }); err != nil {
			b.Fatalf("%v: %d of %d", err, f.received(), burst)
		}
		began := time.Now()
		if err := f.forward(burst); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(began)
	}
	want := before + uint64(bursts*burst)
	if err := await("all came back", func() bool { return t.back() == want }); err != nil {
		b.Fatalf("%v: %d of %d", err, t.back()-before, bursts*burst)
	}
	return spent / time.Duration(bursts*burst)
}

// BenchmarkForward reports the medians of both, and the median and the range of their
// ratio inside one round (below 1: ours are faster). Of each burst all frames must arrive.
func BenchmarkForward(b *testing.B) {
	cases := []struct{ burst, batch, length int }{
		{1, 64, 60}, {64, 64, 60}, {1024, 64, 60}, {1024, 256, 60}, {64, 64, 1400},
	}
	for _, c := range cases {
		b.Run(fmt.Sprintf("burst=%d/batch=%d/bytes=%d", c.burst, c.batch, c.length), func(b *testing.B) {
			enter(b)
			ours, theirs := newTrack(b, "own"), newTrack(b, "asavie")
			var racers [2]forwarder
			tracks := [2]*track{ours, theirs}
			racers[0], racers[1] = newOwn(b, ours, c.batch), newAsavie(b, theirs, c.batch)
			for i, t := range tracks {
				if err := t.sockets.Put(uint32(0), uint32(racers[i].fd())); err != nil {
					b.Fatal(err)
				}
				measure(b, t, racers[i], c.burst, c.length) // warm up
			}
			var times [2][]time.Duration
			var ratios []float64
			for round := 0; b.Loop(); round++ {
				var took [2]time.Duration
				for k := range 2 {
					i := (round + k) % 2 // take turns in going first
					took[i] = measure(b, tracks[i], racers[i], c.burst, c.length)
					times[i] = append(times[i], took[i])
				}
				ratios = append(ratios, float64(took[0])/float64(took[1]))
			}
			slices.Sort(ratios)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(times[0])), "own-ns/frame")
			b.ReportMetric(float64(median(times[1])), "asavie-ns/frame")
			b.ReportMetric(median(ratios), "own/asavie")
			b.ReportMetric(ratios[0], "lowest")
			b.ReportMetric(ratios[len(ratios)-1], "highest")
		})
	}
}

func median[T float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
