package table_test

import (
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func TestRoute(t *testing.T) {
	c := small()
	c.Routes = []table.Route{
		route(0, "0.0.0.0/0", 2),
		route(0, "10.244.0.0/16", 3),
		route(0, "10.244.2.0/24", 4),
		route(0, "10.244.2.7/32", 3),
		route(0, "255.255.255.255/32", 4),
		route(0, "::/0", 3),
		route(0, "ffff::/16", 4),
		route(7, "10.0.0.0/8", 4),
		route(8, "::/0", 4),
	}
	s := load(t, c)
	for _, r := range []struct {
		name string
		net  packet.NetworkID
		addr string
		want uint16
	}{
		{"the default route takes what nothing else does", 0, "8.8.8.8", 2},
		{"the first address of all has it too", 0, "0.0.0.0", 2},
		{"a longer prefix wins", 0, "10.244.3.1", 3},
		{"a still longer one wins", 0, "10.244.2.1", 4},
		{"a host route wins over all", 0, "10.244.2.7", 3},
		{"behind the host route the prefix around it goes on", 0, "10.244.2.8", 4},
		{"the last address of a prefix belongs to it", 0, "10.244.2.255", 4},
		{"the next one does not", 0, "10.244.3.0", 3},
		{"the address before a prefix does not belong to it", 0, "10.244.1.255", 3},
		{"the last IPv4 address may have a route", 0, "255.255.255.255", 4},
		{"IPv6 goes by its own default", 0, "2001:db8::1", 3},
		{"IPv6 below the IPv4 part goes by it", 0, "::1", 3},
		{"IPv6 above the IPv4 part goes by it again", 0, "::1:0:0:0", 3},
		{"a prefix up to the last address of all holds it", 0, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 4},
		{"another network has its own routes", 7, "10.244.2.1", 4},
		{"and no default that it was not given", 7, "11.0.0.1", 0},
		{"nor a route in front of its first", 7, "9.255.255.255", 0},
		{"the IPv6 default is no route for IPv4", 8, "10.0.0.1", 0},
		{"a network between others without routes has none", 3, "10.0.0.1", 0},
		{"a network behind all others has none", 9, "10.0.0.1", 0},
	} {
		a := addr(r.addr)
		if got, ok := s.Route(r.net, &a); got != r.want || ok != (r.want != 0) {
			t.Errorf("%s: port %d %v, want %d", r.name, got, ok, r.want)
		}
	}
}

// TestRouteAgainstScan compares with a linear search over random nested prefixes; the
// addresses asked for are those next to the ends of the prefixes.
func TestRouteAgainstScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		c := small()
		c.Addresses, c.Routes = nil, randomRoutes(rng, rng.IntN(30))
		s := load(t, c)
		for _, r := range c.Routes {
			for _, a := range near(r) {
				for net := packet.NetworkID(0); net < 4; net++ {
					got, _ := s.Route(net, &a)
					if want := longest(c.Routes, net, &a); got != want {
						t.Fatalf("%v in network %d goes through port %d, want %d\nroutes %v", a, net, got, want, c.Routes)
					}
				}
			}
		}
	}
}

func randomRoutes(rng *rand.Rand, n int) (routes []table.Route) {
	seen := map[table.Route]bool{}
	for range n {
		r := table.Route{Network: packet.NetworkID(rng.IntN(3)), Bits: uint8(rng.IntN(129))}
		if rng.IntN(2) == 0 {
			r.Prefix = packet.Addr4([4]byte{byte(rng.IntN(2)) * 255, byte(rng.IntN(3)), 0, byte(rng.IntN(256))})
			r.Bits = uint8(96 + rng.IntN(33))
		} else {
			for _, i := range []int{0, 9, 10, 11, 15} {
				r.Prefix[i] = byte(rng.IntN(3) * 127)
			}
		}
		r = clip(r)
		if key := r; !seen[key] && (!r.Prefix.Is4() || r.Bits >= 96) {
			seen[key] = true
			r.Port = uint16(1 + rng.IntN(4))
			routes = append(routes, r)
		}
	}
	return routes
}

// clip clears the bits behind the prefix length.
func clip(r table.Route) table.Route {
	for i := int(r.Bits); i < 128; i++ {
		r.Prefix[i/8] &^= 0x80 >> (i % 8)
	}
	return r
}

// near lists the first and last address of a prefix and their neighbours.
func near(r table.Route) []packet.Addr {
	first, last := r.Prefix, r.Prefix
	for i := int(r.Bits); i < 128; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	return []packet.Addr{first, last, step(first, 0xff), step(last, 1)}
}

// step adds 1 or, with 0xff, subtracts 1, wrapping around.
func step(a packet.Addr, by byte) packet.Addr {
	for i := 15; i >= 0; i-- {
		a[i] += by
		if by == 1 && a[i] != 0 || by == 0xff && a[i] != 0xff {
			break
		}
	}
	return a
}
