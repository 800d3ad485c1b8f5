package counter

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// File is the counter file as its one writing process holds it. The blocks belong to
// one worker each; the gauges to whoever keeps the file. Methods of File other than
// Close may be called from any goroutine.
type File struct {
	memory []byte
	words  []uint64
	shape  shape
	blocks []*Block
}

// Create opens the counter file at path for so many workers (1 to MaxWorkers). When a
// file of the same shape is there, its counts go on; anything else is replaced, and
// whoever still has the old file mapped keeps reading its last values. The caller must
// be the only writer, which the lock of the state directory ensures.
func Create(path string, workers int) (*File, error) {
	if workers < 1 || workers > MaxWorkers {
		return nil, fmt.Errorf("counter file %s: %d workers, want 1 to %d", path, workers, MaxWorkers)
	}
	want := newShape(workers)
	f, err := adopt(path, want)
	if err != nil {
		f, err = replace(path, want)
	}
	if err != nil {
		return nil, fmt.Errorf("counter file %s: %w", path, err)
	}
	for g := Started; g < Gauges; g++ {
		f.Set(g, 0)
	}
	f.Set(Started, uint64(time.Now().UnixNano()))
	f.blocks = make([]*Block, workers)
	for i := range f.blocks {
		f.blocks[i] = newBlock(f, i)
	}
	return f, nil
}

// adopt maps the file that is there if its shape is the wanted one.
func adopt(path string, want shape) (*File, error) {
	m, err := mapFile(path, unix.O_RDWR, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	got, err := readShape(asWords(m))
	if err == nil && got != want {
		err = fmt.Errorf("%w: made for another number of workers or by another version", ErrLayout)
	}
	if err != nil {
		_ = unix.Munmap(m)
		return nil, err
	}
	return &File{memory: m, words: asWords(m), shape: want}, nil
}

// replace writes an empty file beside path and renames it over whatever is there, so
// that no reader ever maps a file that is still growing.
func replace(path string, want shape) (*File, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".counters-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	size := int64(want.words() * wordBytes)
	// Preallocated: a full file system is an error here and not a fault at the first count.
	if err := unix.Fallocate(int(tmp.Fd()), 0, 0, size); err != nil {
		return nil, fmt.Errorf("reserving %d bytes: %w", size, err)
	}
	m, err := unix.Mmap(int(tmp.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	want.write(asWords(m))
	if err := os.Rename(tmp.Name(), path); err != nil {
		_ = unix.Munmap(m)
		return nil, err
	}
	return &File{memory: m, words: asWords(m), shape: want}, nil
}

// Worker gives the block of worker i, 0 to the number given to Create less one.
func (f *File) Worker(i int) *Block { return f.blocks[i] }

// Set replaces the value of a gauge.
func (f *File) Set(g Gauge, v uint64) { atomic.StoreUint64(&f.words[firstGauge+int(g)], v) }

// Add adds to a gauge and may be called by several goroutines at once.
func (f *File) Add(g Gauge, n uint64) { atomic.AddUint64(&f.words[firstGauge+int(g)], n) }

// Close unmaps the file, which stays where it is. No block may be used afterwards.
func (f *File) Close() error {
	m := f.memory
	f.memory, f.words, f.blocks = nil, nil, nil
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}

// mapFile maps the whole file at path, which must hold at least a header.
func mapFile(path string, open, protection int) ([]byte, error) {
	fd, err := unix.Open(path, open|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < headerSize*wordBytes || st.Size > 1<<26 {
		return nil, fmt.Errorf("%w: %d bytes", ErrLayout, st.Size)
	}
	return unix.Mmap(fd, 0, int(st.Size), protection, unix.MAP_SHARED)
}
