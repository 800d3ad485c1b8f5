package xdp

import (
	"fmt"
	"math/bits"

	"lace-cni.io/lace/fastpath/conntrack"
)

// settings is struct settings of xdp/bpf/settings.h.
type settings struct {
	Layout      uint32
	Trunk       uint32
	Queues      uint32
	MTU         uint32
	FlowMask    uint32
	FlowKeys    [10]uint32
	HostNetwork uint32
	Narrow      uint32
	Lane        uint32
	WeakOrder   uint32
	MAC         [6]byte
	Pad         [2]uint8
}

func (o *Objects) readSettings() error {
	if err := o.bpf.Settings.Lookup(uint32(0), &o.settings); err != nil {
		return fmt.Errorf("pinned settings: %w", err)
	}
	s := o.settings
	s.Layout = Layout
	s.Queues = max(s.Queues, 1)
	s.WeakOrder = weakOrder
	return o.set(s)
}

// SetLane says whether flows that Go installed are repeated in the kernel. Off, every
// packet of theirs goes to Go, and what is installed stays so. Off until it is set first.
func (o *Objects) SetLane(on bool) error {
	s := o.settings
	s.Lane = 0
	if on {
		s.Lane = 1
	}
	return o.set(s)
}

// set writes the settings if they differ from those in force.
func (o *Objects) set(s settings) error {
	if s == o.settings {
		return nil
	}
	if err := o.bpf.Settings.Put(uint32(0), s); err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	o.settings = s
	return nil
}

// SetFlowKeys tells the programs the secret keys and the number of buckets of the table
// that conntrack.Map made of FlowMemory. Until then no flow is found.
func (o *Objects) SetFlowKeys(keys [10]uint32, buckets int) error {
	room := len(o.flows)/conntrack.SlotSize - 1
	if buckets < 1 || bits.OnesCount(uint(buckets)) != 1 || buckets*conntrack.BucketSlots > room {
		return fmt.Errorf("flow table of %d buckets: want a power of two with room in %d slots", buckets, room)
	}
	s := o.settings
	s.FlowKeys, s.FlowMask = keys, uint32(buckets-1)
	return o.set(s)
}
