package table_test

import (
	"fmt"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// walk uses every lookup of a snapshot that was taken, with the keys that it holds and
// with others, and reports the first promise of the package that it breaks.
func walk(s *table.Snapshot) error {
	for _, step := range []func(*table.Snapshot) error{walkPorts, walkFrontends, walkBackends, walkAddresses, walkRoutes} {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

func walkPorts(s *table.Snapshot) error {
	for i := range s.Ports() {
		p := &s.Ports()[i]
		if s.Port(p.ID) != p {
			return fmt.Errorf("%v is not found", p)
		}
	}
	found := 0
	for id := range 1 << 16 {
		if s.Port(uint16(id)) != nil {
			found++
		}
	}
	if found != len(s.Ports()) {
		return fmt.Errorf("%d ports found of %d", found, len(s.Ports()))
	}
	return nil
}

func walkFrontends(s *table.Snapshot) error {
	vips := map[string]bool{}
	for i := range s.Frontends() {
		f := &s.Frontends()[i]
		if s.Frontend(f.Network, &f.Addr, f.Protocol, f.Port) != f || s.FrontendByID(f.ID) != f || f.Flags&table.Narrow == 0 && !s.IsVIP(f.Network, &f.Addr) {
			return fmt.Errorf("%v is not found", f)
		}
		s.Frontend(f.Network+1, &f.Addr, f.Protocol, f.Port+1)
		s.FrontendByID(f.ID + 1)
		if f.Flags&table.Narrow == 0 {
			vips[fmt.Sprint(f.Network, f.Addr)] = true
		}
		if err := walkSources(s, f); err != nil {
			return err
		}
		for _, set := range []table.Set{f.Inside, f.Outside, {First: f.Keep.First, Count: f.Keep.Count}} {
			if ids := s.Set(set); len(ids) != int(set.Count) {
				return fmt.Errorf("%v: %d backends of %d", f, len(ids), set.Count)
			}
			for _, id := range s.Set(set) {
				if b := s.Backend(id); b == nil || b.Protocol != f.Protocol || b.Addr.Is4() != f.Addr.Is4() {
					return fmt.Errorf("%v: backend %d is %v", f, id, b)
				}
			}
		}
	}
	for net, a := range s.VIPs {
		if k := fmt.Sprint(net, a); !vips[k] {
			return fmt.Errorf("VIP %s twice or of no frontend", k)
		} else {
			delete(vips, k)
		}
	}
	if len(vips) != 0 {
		return fmt.Errorf("VIPs %v are not yielded", vips)
	}
	return nil
}

func walkSources(s *table.Snapshot, f *table.Frontend) error {
	ranges := s.Sources(f)
	if len(ranges) != int(f.Sources.Count) || f.Flags&table.Restricted == 0 && len(ranges) > 0 {
		return fmt.Errorf("%v: %d ranges of %d", f, len(ranges), f.Sources.Count)
	}
	for _, r := range ranges {
		if !s.Permits(f, &r.First) || !s.Permits(f, &r.Last) {
			return fmt.Errorf("%v: does not permit the ends of %s to %s", f, r.First, r.Last)
		}
	}
	return nil
}

func walkBackends(s *table.Snapshot) error {
	for i := range s.Backends() {
		b := &s.Backends()[i]
		if s.Backend(b.ID) != b {
			return fmt.Errorf("%v is not found", b)
		}
		s.Backend(b.ID + 1)
	}
	return nil
}

func walkAddresses(s *table.Snapshot) error {
	for i := range s.Addresses() {
		a := &s.Addresses()[i]
		if s.Address(a.Network, &a.Addr) != a || s.Port(a.Port) == nil {
			return fmt.Errorf("%v or its port %d is not found", a, a.Port)
		}
		s.Address(a.Network+1, &a.Addr)
		s.Route(a.Network, &a.Addr)
	}
	return nil
}

func walkRoutes(s *table.Snapshot) error {
	for _, r := range s.Routes() {
		got, _ := s.Route(r.Network, &r.Prefix)
		if want := longest(s.Routes(), r.Network, &r.Prefix); got != want {
			return fmt.Errorf("route of %v through port %d, want %d", r.Prefix, got, want)
		}
		if s.Port(r.Port) == nil {
			return fmt.Errorf("%v: port %d is not found", &r, r.Port)
		}
	}
	return nil
}

// longest is the slow and obvious longest-prefix match; 0: none.
func longest(routes []table.Route, net packet.NetworkID, a *packet.Addr) uint16 {
	best, through := -1, uint16(0)
	for _, r := range routes {
		if r.Network == net && r.Prefix.Is4() == a.Is4() && int(r.Bits) > best && holds(r, a) {
			best, through = int(r.Bits), r.Port
		}
	}
	return through
}

func holds(r table.Route, a *packet.Addr) bool {
	for i := range int(r.Bits) {
		if (r.Prefix[i/8]^a[i/8])&(0x80>>(i%8)) != 0 {
			return false
		}
	}
	return true
}
