package compile

import (
	"bytes"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// sourcesOf is who may call a frontend of that kind. Source ranges guard the balancer's
// addresses alone.
func sourcesOf(s *model.Service, kind model.FrontendKind, family int) sources {
	from, restricted := s.Sources[family]
	if kind != model.LoadBalancer || !restricted {
		return sources{}
	}
	return sources{restricted: true, ranges: rangesOf(from)}
}

// rangesOf sorts prefixes and joins those that overlap or touch.
func rangesOf(prefixes []netip.Prefix) []table.Range {
	var all []table.Range
	for _, p := range prefixes {
		if p.IsValid() && !p.Addr().Is4In6() {
			all = append(all, rangeOf(p))
		}
	}
	slices.SortFunc(all, func(a, b table.Range) int { return bytes.Compare(a.First[:], b.First[:]) })
	var out []table.Range
	for _, r := range all {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if next, more := successor(last.Last); !more || bytes.Compare(r.First[:], next[:]) <= 0 {
				if bytes.Compare(r.Last[:], last.Last[:]) > 0 {
					last.Last = r.Last
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

func rangeOf(p netip.Prefix) table.Range {
	p = p.Masked()
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	r := table.Range{First: packet.AddrFrom(p.Addr())}
	r.Last = r.First
	for i := bits; i < 128; i++ {
		r.Last[i/8] |= 0x80 >> (i % 8)
	}
	return r
}

// successor is the address that follows a; false behind the last.
func successor(a packet.Addr) (packet.Addr, bool) {
	for i := len(a) - 1; i >= 0; i-- {
		a[i]++
		if a[i] != 0 {
			return a, true
		}
	}
	return a, false
}
