package conntrack

import "testing"

// BenchmarkFlood is a port that opens flow after flow and gets no answer, whose share is
// used up: each new flow takes the place of an old one.
func BenchmarkFlood(b *testing.B) {
	t := empty(b, 1<<20)
	t.SharePorts()
	var fwd, rev Flow
	open := func(i int) {
		connection(i, false, &fwd, &rev)
		fwd.In = 7
		if r := t.Insert(&fwd, &rev, uint32(i>>10)); r != Inserted {
			b.Fatalf("flow %d: %v", i, r)
		}
	}
	warm := t.UnansweredMax()
	for i := range warm {
		open(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		open(warm + i)
	}
}
