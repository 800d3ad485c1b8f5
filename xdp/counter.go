package xdp

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/xdp/bpf"
)

// Indexes of the counters map behind the reasons; xdp/bpf/counter.h holds the same.
const (
	countClaimed  = 64
	countPunted   = 65
	countInjected = 66
	countCause    = 67 // and the cause
)

const _ = uint(countClaimed - reason.Count) // reasons must fit below

// Count is packets and bytes, Ethernet headers included.
type Count struct{ Packets, Bytes uint64 }

// Counters of the BPF programs since the maps were made. A packet is in Claimed when it met
// a claim or a flow, and then in Punted, or in Hits, or in a reason of class drop.
type Counters struct {
	// not-claimed: left to the kernel; established and reply: rewritten and delivered by
	// the lane
	Reasons  [reason.Count]Count
	Claimed  Count
	Punted   Count
	Punts    [Causes]Count // Punted by cause
	Injected Count
	Policed  []Policed // by port, those that have some
}

// Hits is what the lane has done without Go. A packet of several segments counts once.
func (c *Counters) Hits() Count {
	return c.Reasons[reason.Established].plus(c.Reasons[reason.Reply])
}

func (c Count) plus(d Count) Count { return Count{c.Packets + d.Packets, c.Bytes + d.Bytes} }

// Counters reads the counters: one system call for each. Any goroutine may call it.
func (o *Objects) Counters() (Counters, error) {
	c, err := readCounters(o.bpf.Counters)
	c.Policed = o.Policed()
	return c, err
}

// CounterReader reads the counters that another process's programs write.
type CounterReader struct {
	m     *ebpf.Map
	bpffs string
}

// OpenCounters opens the counters pinned under bpffs, read-only. It fails with
// fs.ErrNotExist when no fast path has run there.
func OpenCounters(bpffs string) (*CounterReader, error) {
	path := pinsUnder(bpffs).mapPath(bpf.LaceMapCounters)
	spec, err := bpf.LoadLace()
	if err != nil {
		return nil, fmt.Errorf("embedded BPF object: %w", err)
	}
	m, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("counters %s: %w", path, err)
	}
	if m.Type() != ebpf.PerCPUArray || m.ValueSize() != spec.Maps[bpf.LaceMapCounters].ValueSize {
		m.Close()
		return nil, fmt.Errorf("counters %s: not written by this version of Lace; restart lace-fastpath", path)
	}
	return &CounterReader{m, bpffs}, nil
}

// Counters reads the counters.
func (r *CounterReader) Counters() (Counters, error) {
	c, err := readCounters(r.m)
	if err != nil {
		return c, err
	}
	if c.Policed, err = readPoliced(r.bpffs); errors.Is(err, fs.ErrNotExist) {
		err = nil // of a fast path without police
	}
	return c, err
}

// Close lets go of the map.
func (r *CounterReader) Close() error { return r.m.Close() }

func readCounters(m *ebpf.Map) (c Counters, err error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return c, fmt.Errorf("counting CPUs: %w", err)
	}
	each := make([]Count, cpus)
	read := func(index uint32, to *Count) {
		if err != nil {
			return
		}
		if err = m.Lookup(index, &each); err != nil {
			err = fmt.Errorf("counter %d: %w", index, err)
			return
		}
		for _, e := range each {
			*to = to.plus(e)
		}
	}
	for r := range c.Reasons {
		read(uint32(r), &c.Reasons[r])
	}
	read(countClaimed, &c.Claimed)
	c.Claimed = c.Claimed.plus(c.Hits()) // the programs count a packet once
	read(countPunted, &c.Punted)
	read(countInjected, &c.Injected)
	for cause := 1; cause < Causes; cause++ {
		read(uint32(countCause+cause), &c.Punts[cause])
	}
	return c, err
}
