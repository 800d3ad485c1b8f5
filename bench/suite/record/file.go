package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	path, err := target(path)
	if err != nil {
		return err
	}
	f, err := beside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// target is the file that path means, links followed; it need not be there. It is a regular
// one: nothing else can be replaced by another.
func target(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	about, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !about.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file: name one", path)
	}
	f, err := os.OpenFile(real, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	return real, f.Close()
}

// beside makes a file in the folder of path, for a name that path can be given afterwards.
func beside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// writeFile replaces path by a file of these contents once it is whole.
func writeFile(path string, b []byte) error {
	path, err := target(path)
	if err != nil {
		return err
	}
	f, err := beside(path)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
