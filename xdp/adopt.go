package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/xdp/bpf"
)

// Layout is the version of the pinned maps' layout. Maps of another version are not read.
const Layout = 4

var errLayout = errors.New("of another layout")

// adopt opens the pinned maps that fit the spec and removes those that do not.
func (o *Objects) adopt(spec *ebpf.CollectionSpec) (map[string]*ebpf.Map, error) {
	kept := map[string]*ebpf.Map{}
	for name, want := range spec.Maps {
		m, err := openPinned(o.pins.mapPath(name), want)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if isTransient(o.pins.mapPath(name), err) {
			closeMaps(kept)
			return nil, fmt.Errorf("pinned map %s: %w", o.pins.mapPath(name), err)
		}
		if err != nil {
			if err := o.replace(name, m, err); err != nil {
				return nil, err
			}
			continue
		}
		kept[name] = m
	}
	if err := checkLayout(kept[bpf.LaceMapSettings]); err != nil {
		for name, m := range kept {
			if err := o.replace(name, m, err); err != nil {
				return nil, err
			}
		}
		clear(kept)
	}
	o.missFlows(kept)
	return kept, nil
}

// missFlows notes that an earlier process had a flow table of which nothing is left to count.
func (o *Objects) missFlows(kept map[string]*ebpf.Map) {
	replaced := slices.Contains(o.opened.Replaced, bpf.LaceMapFlows)
	if kept[bpf.LaceMapFlows] != nil || o.counted || !replaced && !wasUsed(kept[bpf.LaceMapSettings]) {
		return
	}
	o.opened.Uncounted = true
	o.log.Warn("the pinned flow table is gone, starting afresh without it",
		"path", o.pins.mapPath(bpf.LaceMapFlows), "flows_lost", o.opened.Lost())
}

// wasUsed reports whether a process has come so far as to write its settings.
func wasUsed(m *ebpf.Map) bool {
	var s settings
	return m != nil && m.Lookup(uint32(0), &s) == nil && s.Layout != 0
}

// isTransient tells want of something else from a pin that is bad: it must not cost flows. The
// kernel refuses a directory as it refuses a pin that this process may not read.
func isTransient(path string, err error) bool {
	if errors.Is(err, unix.EACCES) {
		st, e := os.Lstat(path)
		return e != nil || !st.IsDir()
	}
	for _, e := range []error{unix.EPERM, unix.EROFS, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EINTR, unix.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// openPinned also returns the map when it is one but does not fit. Maps of one shape are told
// apart by the names that they were made with.
func openPinned(path string, want *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return nil, err
	}
	if err := want.Compatible(m); err != nil {
		return m, err
	}
	_, name, err := identity(m)
	if err == nil && name != want.Name {
		err = fmt.Errorf("it is the map %q", name)
	}
	return m, err
}

func checkLayout(m *ebpf.Map) error {
	if m == nil {
		return nil
	}
	var s settings
	if err := m.Lookup(uint32(0), &s); err != nil {
		return fmt.Errorf("pinned settings: %w", err)
	}
	if s.Layout != Layout && s.Layout != 0 { // 0: made, not yet written
		return fmt.Errorf("pinned maps have layout %d, this program %d: %w", s.Layout, Layout, errLayout)
	}
	return nil
}

// replace removes a pin that cannot be used. m is its map, or nil when it is none.
func (o *Objects) replace(name string, m *ebpf.Map, why error) error {
	path := o.pins.mapPath(name)
	args := []any{"path", path, "why", why}
	if m != nil {
		if lost, ok := countFlows(m); ok {
			o.counted = true
			o.opened.LostFlows += lost
			args = append(args, "flows_lost", lost)
		}
		m.Close()
	}
	o.log.Warn("pinned map cannot be used, starting afresh without it", args...)
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("unusable pin %s has to be removed by hand: %w", path, err)
	}
	o.opened.Replaced = append(o.opened.Replaced, name)
	return nil
}

// countFlows counts the flows of a table that is given up, under whatever name it was pinned.
// A map of other slots is none.
func countFlows(m *ebpf.Map) (flows int, ok bool) {
	_, name, err := identity(m)
	if err != nil || name != bpf.LaceMapFlows || m.ValueSize() != conntrack.SlotSize || m.Flags()&unix.BPF_F_MMAPABLE == 0 {
		return 0, false
	}
	size := int(m.MaxEntries()) * conntrack.SlotSize
	mem, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, false
	}
	defer unix.Munmap(mem)
	return usedSlots(mem) / 2, true
}

// usedSlots counts slots in use: bit 63 of the key, at byte 8. Slot 0 is the header.
func usedSlots(mem []byte) int {
	n := 0
	for at := conntrack.SlotSize; at+conntrack.SlotSize <= len(mem); at += conntrack.SlotSize {
		if binary.LittleEndian.Uint64(mem[at+8:])>>63 == 1 {
			n++
		}
	}
	return n
}

// ResetFlows empties the flow table, for when conntrack.Map does not know its layout. It
// returns the number of flows lost. No table may use the memory meanwhile.
func (o *Objects) ResetFlows() (lost int) {
	lost = usedSlots(o.flows) / 2
	clear(o.flows)
	clear(o.tags)
	o.opened.LostFlows += lost
	o.opened.Kept = false
	o.log.Warn("flow table emptied", "path", o.pins.mapPath(bpf.LaceMapFlows), "flows_lost", lost)
	return lost
}

func (o *Objects) maps() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{
		bpf.LaceMapBackendFilter:  o.bpf.BackendFilter,
		bpf.LaceMapBackendGens:    o.bpf.BackendGens,
		bpf.LaceMapFrontendGens:   o.bpf.FrontendGens,
		bpf.LaceMapTargetGens:     o.bpf.TargetGens,
		bpf.LaceMapClaimFilter:    o.bpf.ClaimFilter,
		bpf.LaceMapClaims:         o.bpf.Claims,
		bpf.LaceMapCounters:       o.bpf.Counters,
		bpf.LaceMapDevices:        o.bpf.Devices,
		bpf.LaceMapFlows:          o.bpf.Flows,
		bpf.LaceMapFlowTags:       o.bpf.FlowTags,
		bpf.LaceMapLowDevices:     o.bpf.LowDevices,
		bpf.LaceMapPolice:         o.bpf.Police,
		bpf.LaceMapPolicePorts:    o.bpf.PolicePorts,
		bpf.LaceMapPolicePrefixes: o.bpf.PolicePrefixes,
		bpf.LaceMapPorts:          o.bpf.Ports,
		bpf.LaceMapSettings:       o.bpf.Settings,
		bpf.LaceMapSockets:        o.bpf.Sockets,
		bpf.LaceMapSources:        o.bpf.Sources,
	}
}

func (o *Objects) pinMissing(kept map[string]*ebpf.Map) error {
	for name, m := range o.maps() {
		if kept[name] != nil {
			continue
		}
		if err := m.Pin(o.pins.mapPath(name)); err != nil {
			return fmt.Errorf("pinning map %s: %w", name, err)
		}
	}
	return nil
}

func closeMaps(ms map[string]*ebpf.Map) {
	for _, m := range ms {
		m.Close()
	}
}
