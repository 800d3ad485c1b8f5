package dir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/slowpath/regular"
)

// version tells one content of a file from the next without reading it.
type version struct {
	device, inode     uint64
	size              int64
	modified, changed time.Time
}

func versionOf(st *unix.Stat_t) version {
	return version{
		device: st.Dev, inode: st.Ino, size: st.Size,
		modified: time.Unix(st.Mtim.Unix()), changed: time.Unix(st.Ctim.Unix()),
	}
}

// listed is one file of the folder.
type listed struct {
	name    string
	version version
	err     error // it is there, but cannot be looked at
}

// list returns the files that count, by name, and how many more there are than can be
// read. Symbolic links are followed; one that leads nowhere is a file that cannot be
// looked at.
func (d *folder) list() ([]listed, int, error) {
	names, err := entries(d.path, d.limits.entries)
	if err != nil {
		return nil, 0, err
	}
	var out []listed
	for _, name := range names {
		if !counts(name) {
			continue
		}
		st, err := d.stat(d.full(name))
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			continue
		}
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			err = errors.New("it is no regular file")
		}
		out = append(out, listed{name, versionOf(&st), err})
	}
	out, beyond := d.fitting(out)
	return out, beyond, nil
}

// stat looks through links, which may lead to a place that does not answer.
func (d *folder) stat(path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return st, err
	}
	a := d.patience.ask("stat "+path, func() (a answer) {
		a.err = unix.Stat(path, &a.stat)
		return a
	})
	return a.stat, a.err
}

// fitting leaves out what is beyond the limit: files that are known stay, and of the
// others the first by name come in.
func (d *folder) fitting(found []listed) (out []listed, beyond int) {
	beyond = len(found) - d.limits.files
	if beyond <= 0 {
		return found, 0
	}
	room := d.limits.files
	for i := range found {
		if _, known := d.file(found[i].name); known {
			room--
		}
	}
	for i := range found {
		_, known := d.file(found[i].name)
		if !known && room > 0 {
			known = true
			room--
		}
		if known {
			out = append(out, found[i])
		}
	}
	return out, beyond
}

// entries lists the folder, sorted, and gives up on one that is beyond all measure.
func entries(path string, most int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > most {
		return nil, fmt.Errorf("the folder has more than %d entries; give Lace a folder of its own", most)
	}
	slices.Sort(names)
	return names, nil
}

func counts(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// read returns the content of a file and the version that it has. A file that changes
// while it is read has no version: it will be read again.
func read(path string, most int64) ([]byte, version, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, version{}, err
	}
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &before); err != nil {
		return nil, version{}, err
	}
	if before.Size > most {
		return nil, version{}, fmt.Errorf("it has %d bytes, at most %d are read; split it", before.Size, most)
	}
	b, err := regular.All(f, most)
	if err != nil {
		return nil, version{}, err
	}
	if err := unix.Fstat(int(f.Fd()), &after); err != nil {
		return nil, version{}, err
	}
	if v := versionOf(&after); v == versionOf(&before) {
		return b, v, nil
	}
	return b, version{}, nil
}
