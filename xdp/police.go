package xdp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp/bpf"
)

// allowance, allowances, bucket and buckets are the structs of xdp/bpf/police.h.
type allowance struct {
	Cost  uint64
	Depth uint64
}

type allowances struct {
	Of  [police.Asks]allowance
	Any uint64
}

type bucket struct {
	Until   uint64
	Policed uint64
}

type buckets struct{ Of [police.Asks]bucket }

// uplinkShare is how many times the allowance of one prefix an uplink as a whole has:
// UPLINK_SHIFT of xdp/bpf/police.h.
const uplinkShare = 4

// policing is the memory that the programs' police reads and counts in.
type policing struct {
	mem, portMem []byte
	allowed      *allowances
	ports        []buckets
}

func (o *Objects) mapPolice() (err error) {
	p := &o.police
	if p.mem, err = mapArray("allowances", o.bpf.Police); err != nil {
		return err
	}
	if p.portMem, err = mapArray("allowances of the ports", o.bpf.PolicePorts); err != nil {
		return err
	}
	p.allowed = (*allowances)(unsafe.Pointer(&p.mem[0]))
	p.ports = unsafe.Slice((*buckets)(unsafe.Pointer(&p.portMem[0])), table.MaxPorts)
	return nil
}

func (p *policing) unmap() error {
	err := errors.Join(unmap(&p.mem), unmap(&p.portMem))
	*p = policing{}
	return err
}

// Allow says what each port, and behind uplinks each source prefix, may ask of Go from now
// on; an uplink as a whole may ask for four times that. A limit of 0 allows everything, as
// does every limit until it is set first. A handful of stores in memory that the programs
// read; for one goroutine at a time, which need not be the one that the Objects are for.
func (o *Objects) Allow(l police.Limits) {
	if o.police.allowed == nil {
		return
	}
	for ask, n := range l.PerSecond {
		a := &o.police.allowed.Of[ask]
		cost := uint64(0)
		if n > 0 {
			cost = max(uint64(1e9)/uint64(n), uplinkShare)
		}
		atomic.StoreUint64(&a.Depth, max(cost*uint64(l.Burst), uint64(together)))
		atomic.StoreUint64(&a.Cost, cost)
	}
	atomic.StoreUint64(&o.police.allowed.Any, l.Any())
}

// together is the least depth of an allowance: what comes within a millisecond belongs
// together.
const together = 1_000_000

// Policed is how many packets of a port's the police has dropped.
type Policed struct {
	Port    uint16
	Packets [police.Asks]uint64 // by police.Ask
}

// Sum is over all kinds.
func (p *Policed) Sum() (n uint64) {
	for _, k := range p.Packets {
		n += k
	}
	return n
}

// Policed lists the ports of which packets were dropped since their device became a port,
// by id. No system call. Any goroutine may call it until Close.
func (o *Objects) Policed() []Policed { return policed(o.police.ports) }

func policed(ports []buckets) (out []Policed) {
	for id := range ports {
		p := Policed{Port: uint16(id)}
		for ask := range p.Packets {
			p.Packets[ask] = atomic.LoadUint64(&ports[id].Of[ask].Policed)
		}
		if p.Sum() > 0 {
			out = append(out, p)
		}
	}
	return out
}

// forget gives a port that has come to mean another device a fresh start.
func (p *policing) forget(id uint32) {
	if int(id) >= len(p.ports) {
		return
	}
	for ask := range p.ports[id].Of {
		b := &p.ports[id].Of[ask]
		atomic.StoreUint64(&b.Until, 0)
		atomic.StoreUint64(&b.Policed, 0)
	}
}

// forgetMoved forgets the ports that will mean another device than they do.
func (o *Objects) forgetMoved(byID map[uint32]port) {
	for id, p := range byID {
		if have, ok := o.ports.have[id]; ok && have.Ifindex != p.Ifindex {
			o.police.forget(id)
		}
	}
	for id := range o.ports.have {
		if _, stays := byID[id]; !stays {
			o.police.forget(id)
		}
	}
}

// readPoliced reads what the programs of another process have dropped, by port. It fails
// with fs.ErrNotExist when no fast path of this version has run there.
func readPoliced(bpffs string) ([]Policed, error) {
	path := pinsUnder(bpffs).mapPath(bpf.LaceMapPolicePorts)
	m, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("policed packets %s: %w", path, err)
	}
	defer m.Close()
	if m.Type() != ebpf.Array || int(m.ValueSize()) != int(unsafe.Sizeof(buckets{})) || m.MaxEntries() != table.MaxPorts {
		return nil, fmt.Errorf("policed packets %s: not written by this version of Lace; restart lace-fastpath", path)
	}
	var cursor ebpf.MapBatchCursor
	keys, values := make([]uint32, table.MaxPorts), make([]buckets, table.MaxPorts)
	n, err := m.BatchLookup(&cursor, keys, values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("policed packets %s: %w", path, err)
	}
	return policed(values[:n]), nil
}
