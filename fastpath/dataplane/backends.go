package dataplane

import (
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// settledAfter is how long the tables have to stay as they are before backends that are gone
// are forgotten: an address too many costs its packets a look-up and its fragments a detour,
// and finding out costs a walk through the flow table.
const settledAfter = 10 * time.Minute

// backends tells the kernel the addresses from which replies may come, for it looks at no
// others: those of the tables, and those of flows that outlive their backend's record.
type backends struct {
	kernel interface {
		WidenBackends([]packet.Addr) error
		SetBackends([]packet.Addr) error
	}
	flows interface {
		Range(func(*conntrack.Flow) bool)
	}

	started bool      // the flows that were found at start are known
	failed  bool      // the kernel was not told the last time
	changed time.Time // when the tables were, zero when the kernel knows exactly these
}

// atATime is how many addresses the kernel is told at a time: a list of all would be some
// megabytes, and garbage, with every change in a large cluster.
const atATime = 1 << 12

// widen adds the backends of tables that are about to come into use.
func (b *backends) widen(s *table.Snapshot, now time.Time) (err error) {
	list := s.Backends()
	addrs := make([]packet.Addr, 0, min(atATime, len(list)))
	if !b.started {
		addrs = append(addrs, b.ofFlows()...)
	}
	tell := func() {
		if failed := b.kernel.WidenBackends(addrs); err == nil {
			err = failed
		}
		addrs = addrs[:0]
	}
	for i := range list {
		if len(addrs) >= atATime {
			tell()
		}
		addrs = append(addrs, list[i].Addr)
	}
	tell()
	b.changed = now
	b.failed, b.started = err != nil, b.started || err == nil
	return err
}

// narrow forgets backends that are gone and have no flows, when nothing has changed for
// long enough.
func (b *backends) narrow(s *table.Snapshot, now time.Time) error {
	if b.failed {
		return b.widen(s, now)
	}
	if b.changed.IsZero() || now.Sub(b.changed) < settledAfter {
		return nil
	}
	err := b.kernel.SetBackends(append(addressesOf(s), b.ofFlows()...))
	if err == nil {
		b.changed = time.Time{}
	}
	return err
}

func addressesOf(s *table.Snapshot) []packet.Addr {
	list := s.Backends()
	addrs := make([]packet.Addr, len(list))
	for i := range list {
		addrs[i] = list[i].Addr
	}
	return addrs
}

func (b *backends) ofFlows() []packet.Addr {
	seen := map[packet.Addr]struct{}{}
	b.flows.Range(func(f *conntrack.Flow) bool {
		if f.Flags&conntrack.FlagReply == 0 {
			seen[f.Rewrite.Dst] = struct{}{}
		}
		return true
	})
	addrs := make([]packet.Addr, 0, len(seen))
	for a := range seen {
		addrs = append(addrs, a)
	}
	return addrs
}
