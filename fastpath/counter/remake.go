package counter

import (
	"fmt"
	"os"
	"path/filepath"
)

// Remake writes the file anew when another one, or none, is at its path, and says whether
// it did. What has been written before goes into the new file, so that a reader sees no
// reset. One goroutine may call it, at any time; it costs two system calls when the file
// is there.
func (f *File) Remake() (bool, error) {
	file := f.file.Load()
	ours, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("counter file %s: %w", f.path, err)
	}
	if there, err := os.Lstat(f.path); err == nil && os.SameFile(ours, there) {
		return false, nil
	}
	if err := f.move(file); err != nil {
		return false, fmt.Errorf("counter file %s is not there and cannot be made: %w", f.path, err)
	}
	f.writeHeader()
	return true, nil
}

// move puts a copy of the old file at the path and writes to that from now on. What a
// worker writes meanwhile into the old one comes again with its next write. The old one is
// closed when the last worker has let go of it, by the collector.
func (f *File) move(old *os.File) error {
	b := make([]byte, f.shape.words()*wordBytes)
	if _, err := old.ReadAt(b, 0); err != nil {
		clear(b) // cut as well: the next writes bring everything
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".counters-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteAt(b, 0)
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		tmp.Close()
		return err
	}
	f.file.Store(tmp)
	return nil
}
