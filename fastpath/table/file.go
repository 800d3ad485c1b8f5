package table

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open copies the snapshot file at path into memory of its own and checks the copy. The
// snapshot stays what it was whatever becomes of the file: nobody can change what was
// checked. The copy is some 2 ms of the 9 ms that opening the tables of 10,000 Services takes
// (BenchmarkOpen).
// Errors name the path; they are fs.ErrNotExist, ErrDamaged, ErrLayout or what the
// system says.
func Open(path string) (*Snapshot, error) {
	s, err := open(path)
	switch {
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("open snapshot %s: %w; remove the file, the agent writes a new one", path, err)
	case err != nil:
		return nil, fmt.Errorf("open snapshot %s: %w", path, err)
	}
	return s, nil
}

func open(path string) (*Snapshot, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0) // non-blocking: a pipe must not hang us
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	size, err := sizeOf(fd)
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", size, err)
	}
	s, err := copied(fd, b)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(b))
	}
	s.mapping = b
	return s, nil
}

// copied fills b with the file, makes it read-only, and checks it.
func copied(fd int, b []byte) (*Snapshot, error) {
	for n := 0; n < len(b); {
		k, err := unix.Pread(fd, b[n:], int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("read: %w", err)
		case k == 0:
			return nil, fmt.Errorf("%w: cut short to %d bytes while it was read", ErrDamaged, n)
		}
		n += max(k, 0)
	}
	if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
		return nil, fmt.Errorf("write protection: %w", err)
	}
	return Load(b)
}

// sizeOf is the size of a regular file that may be a snapshot.
func sizeOf(fd int) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("stat: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, fmt.Errorf("%w: not a regular file", ErrDamaged)
	}
	if st.Size < int64(headerSize) || st.Size > MaxSize {
		return 0, fmt.Errorf("%w: %d bytes, a snapshot has %d to %d", ErrDamaged, st.Size, headerSize, MaxSize)
	}
	return int(st.Size), nil
}

// Close gives the memory back. Nobody may use the snapshot, or anything it
// returned, at that time or later. A snapshot from Load needs no Close, and a second
// one does nothing.
func (s *Snapshot) Close() error {
	if s.mapping == nil {
		return nil
	}
	b := s.mapping
	*s = Snapshot{}
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap snapshot: %w", err)
	}
	return nil
}

// WriteFile puts b at path, mode 0600, so that a reader finds the file of before or all
// of the new one. The disk space is taken before the first byte is written. It does not
// sync: a state directory lives in memory, and a file that a crash cut short is told by
// its checksum. One writer per path at a time; it passes through path.new.
func WriteFile(path string, b []byte) error {
	next := path + ".new"
	err := write(next, b)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		os.Remove(next) // best effort; the next write truncates it
		return fmt.Errorf("write snapshot %s: %w; the file of before stays", path, err)
	}
	return nil
}

func write(path string, b []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(0o600); err != nil { // one left behind may have another mode
		return err
	}
	if err := allocate(f, len(b)); err != nil {
		return fmt.Errorf("allocate %d bytes: %w", len(b), err)
	}
	_, err = f.Write(b)
	return err
}

// allocate takes the space of size bytes, where the file system can promise it.
func allocate(f *os.File, size int) error {
	if size == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		default:
			return err
		}
	}
}
