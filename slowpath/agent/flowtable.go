package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/xdp/bpf"
)

// flowTable is the pinned flow table, mapped to read.
type flowTable struct {
	*conntrack.Reader
	slots, tags []byte
}

// openFlows maps the flow table pinned under bpffs. It stays valid when the fast path
// replaces the table, but then shows the old one: open it for each look.
func openFlows(bpffs string) (t *flowTable, err error) {
	t = &flowTable{}
	if t.slots, err = mapPinned(bpffs, bpf.LaceMapFlows); err != nil {
		return nil, err
	}
	if t.tags, err = mapPinned(bpffs, bpf.LaceMapFlowTags); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.Reader, err = conntrack.View(t.slots, t.tags); err != nil {
		err = fmt.Errorf("flow table pinned under %s: %w; agent and fast path must be at most one version apart", bpffs, err)
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// mapPinned maps all entries of a pinned array.
func mapPinned(bpffs, name string) ([]byte, error) {
	path := filepath.Join(bpffs, "lace", "maps", name)
	// A map that is opened read-only cannot be mapped shared, the kernel says EINVAL; the
	// mapping is read-only for ever all the same.
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no flow table: lace-fastpath of this version has not run with the BPF file system %s", bpffs)
	}
	if err != nil {
		return nil, fmt.Errorf("flow table %s: %w", path, err)
	}
	defer m.Close() // the mapping outlives it
	size := int(m.MaxEntries()) * int(m.ValueSize())
	memory, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("flow table %s: mapping %d bytes: %w", path, size, err)
	}
	return memory, nil
}

// Close unmaps the table.
func (t *flowTable) Close() error {
	var errs []error
	for _, memory := range [][]byte{t.slots, t.tags} {
		if memory != nil {
			errs = append(errs, unix.Munmap(memory))
		}
	}
	return errors.Join(errs...)
}
