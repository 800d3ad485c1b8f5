package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// pins names the files under <bpffs>/lace that keep maps and links alive.
type pins string

func pinsUnder(bpffs string) pins { return pins(filepath.Join(bpffs, "lace")) }

func (p pins) mapPath(name string) string  { return filepath.Join(string(p), "maps", name) }
func (p pins) linkPath(name string) string { return filepath.Join(string(p), "links", name) }

// create makes the directories; bpffs has to be mounted.
func (p pins) create() error {
	bpffs := filepath.Dir(string(p))
	var st unix.Statfs_t
	if err := unix.Statfs(bpffs, &st); err != nil {
		return fmt.Errorf("BPF file system %s: %w", bpffs, err)
	}
	if st.Type != unix.BPF_FS_MAGIC {
		return fmt.Errorf("%s is not a BPF file system: mount one (mount -t bpf bpf %s)", bpffs, bpffs)
	}
	for _, dir := range []string{p.mapPath(""), p.linkPath("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("directory for pins: %w", err)
		}
	}
	return nil
}

// OpenPins opens the directory under bpffs in which everything is pinned, made if it is
// missing: something to lock for a process that wants to be the only one there.
func OpenPins(bpffs string) (*os.File, error) {
	p := pinsUnder(bpffs)
	if err := p.create(); err != nil {
		return nil, err
	}
	return os.Open(string(p))
}

// links lists the names of pinned links.
func (p pins) links() ([]string, error) {
	entries, err := os.ReadDir(p.linkPath(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pinned links: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}
