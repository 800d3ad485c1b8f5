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

func (o *Objects) setFilter(f *filter) error {
	if err := o.bpf.ClaimFilter.Put(uint32(0), f); err != nil {
		return fmt.Errorf("writing the filter of claimed addresses: %w", err)
	}
	return nil
}

// readFilter writes what the claims found at start need, should the filter be lost.
func (o *Objects) readFilter() error { return o.setFilter(filterOf(o.claims.have)) }
