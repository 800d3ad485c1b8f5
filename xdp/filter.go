package xdp

import (
	"fmt"

	"lace-cni.io/lace/fastpath/packet"
)

// filter is struct filter of xdp/bpf/claim.h: one bit for each claimed address. A bit too
// many costs a look-up, one too few loses a claim, so it is widened before claims are added
// and narrowed after they were removed.
type filter [1024]uint64

func (f *filter) add(a packet.Addr) {
	bit := (a.Word(0) ^ a.Word(1) ^ a.Word(2) ^ a.Word(3)) * 0x9e3779b1 >> 16
	f[bit>>6] |= 1 << (bit & 63)
}

func filterOf[V any](claims map[claim]V) *filter {
	f := new(filter)
	for c := range claims {
		f.add(c.Addr)
	}
	return f
}

func (f *filter) or(g *filter) {
	for i := range f {
		f[i] |= g[i]
	}
}

// WidenBackends looks for flows of packets from these addresses too, and claims fragments from
// them: before flows to them begin.
func (o *Objects) WidenBackends(addrs []packet.Addr) error {
	f := o.backendFilter
	for i := range addrs {
		f.add(addrs[i])
	}
	return o.setBackends(f)
}

// SetBackends does so with exactly these addresses, and others that share a bit with one.
func (o *Objects) SetBackends(addrs []packet.Addr) error {
	var f filter
	for i := range addrs {
		f.add(addrs[i])
	}
	return o.setBackends(f)
}

func (o *Objects) setBackends(f filter) error {
	if f == o.backendFilter {
		return nil
	}
	if err := o.bpf.BackendFilter.Put(uint32(0), &f); err != nil {
		return fmt.Errorf("writing the filter of backend addresses: %w", err)
	}
	o.backendFilter = f
	return nil
}

// readBackends reads what an earlier process has written.
func (o *Objects) readBackends() error {
	if err := o.bpf.BackendFilter.Lookup(uint32(0), &o.backendFilter); err != nil {
		return fmt.Errorf("pinned filter of backend addresses: %w", err)
	}
	return nil
}

func (o *Objects) setFilter(f *filter) error {
	if err := o.bpf.ClaimFilter.Put(uint32(0), f); err != nil {
		return fmt.Errorf("writing the filter of claimed addresses: %w", err)
	}
	o.claimFilter = *f
	return nil
}

// readFilter writes what the claims found at start need, should the filter be lost.
func (o *Objects) readFilter() error { return o.setFilter(filterOf(o.claims.have)) }
