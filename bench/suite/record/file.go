package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MaxFile is how many bytes are read of a recorded run, or of a document that figures are put
// into: a hundred times what the longest run leaves.
const MaxFile = 64 << 20

// ReadFile reads a regular file of no more than MaxFile bytes. It refuses anything else
// without reading it: a device has no end, and a pipe that nobody writes has no beginning.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	about, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: name one", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(b) > MaxFile {
		err = fmt.Errorf("%s has more than %d bytes: it is no record and no document", path, MaxFile)
	}
	return b, err
}

// Writable reports why a run could not be written to path, so that nobody measures for an
// hour to learn it. What is there stays as it is; what is not there is made and removed.
func Writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		return errors.Join(f.Close(), os.Remove(path))
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if f, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		return err
	}
	return f.Close()
}
