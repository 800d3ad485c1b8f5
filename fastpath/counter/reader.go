package counter

import (
	"fmt"
	"os"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/reason"
)

// Tally is a number of packets and their bytes, Ethernet header included.
type Tally struct{ Packets, Bytes uint64 }

// Totals is everything a counter file says, summed over its workers. Workers write at
// moments of their own, so two sums may differ by what was counted in between.
type Totals struct {
	Workers int
	Reasons [reason.Count]Tally
	Events  [Events]uint64
	Gauges  [Gauges]uint64
	Holes   []blackhole.Hole // the last seen first
	Beats   []int64          // last sign of life of each worker, nanoseconds of the monotonic clock, 0 for none yet
}

// Reader holds what a counter file of a running fast path said when it was opened. Its
// methods may be called from any goroutine.
type Reader struct {
	words []uint64
	shape shape
}

// Open reads the counter file at path. The error wraps os.ErrNotExist when no fast path has
// run yet and ErrLayout when the file is of another make, or somebody has just cut it. Open
// again for every scrape.
func Open(path string) (*Reader, error) {
	f, words, err := readFile(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("counter file %s: %w", path, err)
	}
	defer f.Close()
	s, err := readShape(words)
	if err != nil {
		return nil, fmt.Errorf("counter file %s: %w; start the fast path of this version, it writes a new one", path, err)
	}
	return &Reader{words: words, shape: s}, nil
}

// Totals sums over the workers. Reasons, events and gauges that the file's writer did
// not know are zero; those that only the writer knows are left out.
func (r *Reader) Totals() Totals {
	t := Totals{Workers: r.shape.workers, Beats: make([]int64, r.shape.workers), Holes: r.holes()}
	for i := range r.shape.workers {
		r.addWorker(&t, i)
	}
	for g := range min(int(Gauges), r.shape.gauges) {
		t.Gauges[g] = r.word(firstGauge + g)
	}
	return t
}

func (r *Reader) addWorker(t *Totals, i int) {
	for n := range min(int(reason.Count), r.shape.reasons) {
		t.Reasons[n].Packets += r.word(r.shape.packet(i) + n)
		t.Reasons[n].Bytes += r.word(r.shape.byteAt(i) + n)
	}
	for e := range min(int(Events), r.shape.events) {
		t.Events[e] += r.word(r.shape.event(i) + e)
	}
	t.Beats[i] = int64(r.word(r.shape.beat(i)))
}

func (r *Reader) word(i int) uint64 { return r.words[i] }

// Close ends the use of the reader.
func (r *Reader) Close() error {
	r.words, r.shape = nil, shape{}
	return nil
}
