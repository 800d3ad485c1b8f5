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
	memory []byte
}

// openFlows maps the flow table pinned under bpffs. It stays valid when the fast path
// replaces the table, but then shows the old one: open it for each look.
func openFlows(bpffs string) (*flowTable, error) {
	path := filepath.Join(bpffs, "lace", "maps", bpf.LaceMapFlows)
	// A map that is opened read-only cannot be mapped shared, the kernel says EINVAL; the
	// mapping is read-only for ever all the same.
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no flow table: lace-fastpath has not run with the BPF file system %s", bpffs)
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
	r, err := conntrack.View(memory)
	if err != nil {
		_ = unix.Munmap(memory)
		return nil, fmt.Errorf("flow table %s: %w; agent and fast path must be at most one version apart", path, err)
	}
	return &flowTable{Reader: r, memory: memory}, nil
}

// Close unmaps the table.
func (t *flowTable) Close() error { return unix.Munmap(t.memory) }
