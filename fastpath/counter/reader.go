package counter

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/reason"
)

// Tally is a number of packets and their bytes, Ethernet header included.
type Tally struct{ Packets, Bytes uint64 }

// Totals is everything a counter file says, summed over its workers. Words are read one
// by one while the workers go on, so two of them may differ by the packets of a batch.
type Totals struct {
	Workers int
	Reasons [reason.Count]Tally
	Events  [Events]uint64
	Gauges  [Gauges]uint64
	Beats   []int64 // last sign of life of each worker, nanoseconds of the monotonic clock, 0 for none yet
}

// Reader reads the counter file of a running fast path, from any process. Its methods
// may be called from any goroutine, except Close.
type Reader struct {
	memory []byte
	words  []uint64
	shape  shape
}

// Open maps the counter file at path read-only. The error wraps os.ErrNotExist when no
// fast path has run yet and ErrLayout when the file is of another make. A reader stays
// with the file it opened: open again for every scrape, so that a file which a newer
// fast path has put in its place is seen.
func Open(path string) (*Reader, error) {
	m, err := mapFile(path, unix.O_RDONLY, unix.PROT_READ)
	if err != nil {
		return nil, fmt.Errorf("counter file %s: %w", path, err)
	}
	s, err := readShape(asWords(m))
	if err != nil {
		_ = unix.Munmap(m)
		return nil, fmt.Errorf("counter file %s: %w; start the fast path of this version, it writes a new one", path, err)
	}
	return &Reader{memory: m, words: asWords(m), shape: s}, nil
}

// Totals sums over the workers. Reasons, events and gauges that the file's writer did
// not know are zero; those that only the writer knows are left out.
func (r *Reader) Totals() Totals {
	t := Totals{Workers: r.shape.workers, Beats: make([]int64, r.shape.workers)}
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

func (r *Reader) word(i int) uint64 { return atomic.LoadUint64(&r.words[i]) }

// Close unmaps the file.
func (r *Reader) Close() error {
	m := r.memory
	r.memory, r.words = nil, nil
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
