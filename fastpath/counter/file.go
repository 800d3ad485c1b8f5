package counter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// File is the counter file as its one writing process holds it: the words in memory of its
// own, and the file to write them to. Whatever becomes of the file, the memory stays; a
// file that was truncated is whole again after the next writes. The blocks belong to one
// worker each; the gauges to whoever keeps the file. Methods of File other than Close may
// be called from any goroutine.
type File struct {
	path   string
	file   atomic.Pointer[os.File] // workers write to it while Remake replaces it
	words  []uint64
	shape  shape
	blocks []*Block
	header sync.Mutex // one writer of the header at a time
	failed atomic.Pointer[error]
}

// Create opens the counter file at path for so many workers (1 to MaxWorkers). When a
// file of the same shape is there, its counts go on; anything else is replaced. The caller
// must be the only writer, which the lock of the state directory ensures.
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

// adopt goes on with the file that is there if its shape is the wanted one.
func adopt(path string, want shape) (*File, error) {
	file, words, err := readFile(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	got, err := readShape(words)
	if err == nil && got != want {
		err = fmt.Errorf("%w: made for another number of workers or by another version", ErrLayout)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return newFile(path, file, words, want), nil
}

// replace writes an empty file beside path and renames it over whatever is there, so
// that no reader ever finds a file that is still growing.
func replace(path string, want shape) (*File, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".counters-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	words := make([]uint64, want.words())
	want.write(words)
	_, err = tmp.WriteAt(asBytes(words), 0)
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		tmp.Close()
		return nil, err
	}
	return newFile(path, tmp, words, want), nil
}

func newFile(path string, file *os.File, words []uint64, s shape) *File {
	f := &File{path: path, words: words, shape: s}
	f.file.Store(file)
	return f
}

// Worker gives the block of worker i, 0 to the number given to Create less one.
func (f *File) Worker(i int) *Block { return f.blocks[i] }

// Set replaces the value of a gauge and writes the header: one system call.
func (f *File) Set(g Gauge, v uint64) {
	atomic.StoreUint64(&f.words[firstGauge+int(g)], v)
	f.writeHeader()
}

// Add adds to a gauge and writes the header. Several goroutines may call it at once.
func (f *File) Add(g Gauge, n uint64) {
	atomic.AddUint64(&f.words[firstGauge+int(g)], n)
	f.writeHeader()
}

// writeHeader writes all of it, so that a file which somebody cut is whole again.
func (f *File) writeHeader() {
	f.header.Lock()
	defer f.header.Unlock()
	var words [headerSize]uint64
	for i := range words {
		words[i] = atomic.LoadUint64(&f.words[i])
	}
	f.write(words[:], 0)
}

// write puts words into the file from the given word on. What fails is kept for Failed.
func (f *File) write(words []uint64, from int) {
	if _, err := f.file.Load().WriteAt(asBytes(words), int64(from*wordBytes)); err != nil {
		failed := err // err itself must not leave the stack, for it is made every time
		f.failed.Store(&failed)
	}
}

// Failed gives an error of writing since the last call, nil when there was none. Counts
// that did not reach the file are not lost: every write brings the sums.
func (f *File) Failed() error {
	if err := f.failed.Swap(nil); err != nil {
		return fmt.Errorf("counter file: %w", *err)
	}
	return nil
}

// Close lets go of the file, which stays where it is. No block may be used afterwards.
func (f *File) Close() error {
	file := f.file.Swap(nil)
	if file == nil {
		return nil
	}
	f.words, f.blocks = nil, nil
	return file.Close()
}

// readFile opens the file at path and reads the whole of it, which must hold at least a
// header.
func readFile(path string, flag int) (*os.File, []uint64, error) {
	// Non-blocking: a pipe in its place must not hang us.
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	words, err := readWords(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, words, nil
}

func readWords(f *os.File) ([]uint64, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() < headerSize*wordBytes || st.Size() > maxSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrLayout, st.Size())
	}
	words := make([]uint64, st.Size()/wordBytes)
	if _, err := io.ReadFull(f, asBytes(words)); err != nil {
		return nil, fmt.Errorf("%w: cut short while it was read: %w", ErrLayout, err)
	}
	return words, nil
}
