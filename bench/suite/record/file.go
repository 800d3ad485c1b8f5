package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/slowpath/regular"
)

// MaxFile is how many bytes are read of a recorded run, or of a document that figures are put
// into: a hundred times what the longest run leaves.
const MaxFile = 64 << 20

// ReadFile reads a regular file of no more than MaxFile bytes, and refuses anything else
// without reading it.
func ReadFile(path string) ([]byte, error) {
	b, err := regular.Read(path, MaxFile)
	var named *fs.PathError
	if err != nil && !errors.As(err, &named) {
		err = fmt.Errorf("%s: %w", path, err)
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
