package xdp

import (
	"errors"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/table"
)

// Ids of frontends and backends from here on have no generation in the kernel: their flows
// cannot be installed and stay with Go. xdp/bpf/generation.h holds the same numbers.
const (
	FrontendIDs = 262144
	BackendIDs  = 1048576
)

// generationExists is GENERATION_EXISTS of xdp/bpf/generation.h.
const generationExists = 0x10000

// generations is one array of generations by id, in memory that the programs read. Its one
// writer is this process.
type generations struct {
	mem     []byte
	entries []uint32
	present []uint64 // one bit for each entry that is not 0
	next    []uint64 // the same, of the tables that are being taken over
}

// mapGenerations maps the array and finds out what an earlier process left in it.
func mapGenerations(m *ebpf.Map) (g generations, err error) {
	if g.mem, err = mapArray("generations", m); err != nil {
		return g, err
	}
	g.entries = unsafe.Slice((*uint32)(unsafe.Pointer(&g.mem[0])), len(g.mem)/4)
	g.present, g.next = make([]uint64, len(g.entries)/64), make([]uint64, len(g.entries)/64)
	for id := range g.entries {
		if g.entries[id] != 0 {
			g.present[id/64] |= 1 << (id % 64)
		}
	}
	return g, nil
}

func (g *generations) unmap() error {
	err := unmap(&g.mem)
	*g = generations{}
	return err
}

// set notes that the id exists with this generation. Ids without an entry are left out.
func (g *generations) set(id uint32, generation uint16) {
	if int(id) >= len(g.entries) {
		return
	}
	g.next[id/64] |= 1 << (id % 64)
	if e := generationExists | uint32(generation); g.entries[id] != e {
		atomic.StoreUint32(&g.entries[id], e)
	}
}

// trim takes out the ids that were there and were not set since the last call.
func (g *generations) trim() {
	for i := range g.present {
		for gone := g.present[i] &^ g.next[i]; gone != 0; gone &= gone - 1 {
			atomic.StoreUint32(&g.entries[i*64+bits.TrailingZeros64(gone)], 0)
		}
		g.present[i], g.next[i] = g.next[i], 0
	}
}

// SyncGenerations makes the programs take a flow for valid only if its frontend, backend
// and target exist in s with the generations under which it was decided. What differs is
// revoked from the next packet on, which goes to Go; so Go must work by s already.
//
// One pass over the records, a store for each that changed, no system call: some 4 ns for
// each frontend and backend, and 10 us besides.
func (o *Objects) SyncGenerations(s *table.Snapshot) error {
	if o.frontends.mem == nil {
		return errors.New("generations cannot be written: the objects are closed")
	}
	for _, f := range s.Frontends() {
		o.frontends.set(f.ID, f.Generation)
	}
	for _, b := range s.Backends() {
		o.backends.set(b.ID, b.Generation)
	}
	for _, p := range s.Ports() {
		o.targets.set(uint32(p.ID), p.Generation)
	}
	o.frontends.trim()
	o.backends.trim()
	o.targets.trim()
	return nil
}

func (o *Objects) mapAllGenerations() (err error) {
	if o.frontends, err = mapGenerations(o.bpf.FrontendGens); err != nil {
		return err
	}
	if o.backends, err = mapGenerations(o.bpf.BackendGens); err != nil {
		return err
	}
	o.targets, err = mapGenerations(o.bpf.TargetGens)
	return err
}
