package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/affinity"
)

// AffinityRecords is how many clients of Services with session affinity a node remembers.
const AffinityRecords = 1 << 17

// affinityMap is the name of its pin. No program reads the map: it is memory that outlives
// the process and that nobody can cut short.
const affinityMap = "affinity"

func affinitySpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name: affinityMap, Type: ebpf.Array, Flags: unix.BPF_F_MMAPABLE,
		KeySize: 4, ValueSize: uint32(affinity.BucketSize),
		MaxEntries: uint32(affinity.Memory(AffinityRecords) / affinity.BucketSize),
	}
}

// OpenAffinity maps the affinity records of an earlier process, or of none. What is pinned
// in their place and is something else is removed, with a line in the log. The memory is
// good for affinity.Map and valid until Close.
func (o *Objects) OpenAffinity() ([]byte, error) {
	spec := affinitySpec()
	m, err := openPinned(o.pins.mapPath(affinityMap), spec)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		m, err = o.pinAffinity(spec)
	case isTransient(o.pins.mapPath(affinityMap), err):
	default:
		if err = o.replace(affinityMap, m, err); err == nil {
			m, err = o.pinAffinity(spec)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pinned map %s: %w", o.pins.mapPath(affinityMap), err)
	}
	o.records = m // for Audit, should the pin be taken away
	o.affinity, err = mapArray("affinity records", m)
	return o.affinity, err
}

func (o *Objects) pinAffinity(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, err
	}
	path := o.pins.mapPath(affinityMap)
	if err := m.Pin(path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}
