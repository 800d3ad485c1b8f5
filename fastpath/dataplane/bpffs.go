package dataplane

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// mounted checks that there is a BPF file system at the path, in the words of lace check.
func mounted(path string) error {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	switch {
	case err == nil && st.Type == unix.BPF_FS_MAGIC:
		return nil
	case err == nil:
		return fmt.Errorf("bpf file system: none at %s → mount -t bpf bpf %s", path, path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("bpf file system: none at %s → mkdir -p %s && mount -t bpf bpf %s", path, path, path)
	}
	return fmt.Errorf("bpf file system %s: %w", path, err)
}
