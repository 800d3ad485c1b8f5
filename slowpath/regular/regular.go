// Package regular reads files that somebody else names: regular ones, up to a bound.
//
// A device has no end, a pipe that nobody writes has no beginning, and what the kernel makes up
// may wait for ever or be meant for others. None of them is read, or waited for.
package regular

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a file to be read. It refuses everything but a regular file; such errors do not name
// the path.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // non-blocking: a pipe must not hang us
	if err != nil {
		return nil, err
	}
	if err := judge(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func judge(f *os.File) error {
	about, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !about.Mode().IsRegular():
		return errors.New("it is no regular file")
	case kernelMakes(f.Fd()):
		return errors.New("it is a file of the kernel's (proc or sysfs)")
	}
	return nil
}

// All reads what is left of a file, and refuses more than most bytes.
func All(f *os.File, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return b, nil
}

// Read reads a whole file that Open takes, of at most that many bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(f, most)
}
