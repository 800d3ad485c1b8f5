package table_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func TestContentsComeBackAsTheyWere(t *testing.T) {
	for name, c := range map[string]*table.Contents{
		"a node with a service in two families": small(),
		"a node with nothing":                   {Settings: table.DefaultSettings()},
		"a node with 200 services":              many(200, rand.New(rand.NewPCG(1, 2))),
	} {
		got := load(t, c).Contents()
		if diff := cmp.Diff(*c, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHeaderFields(t *testing.T) {
	c := small()
	s := load(t, c)
	if s.Generation() != 7 || s.CreatedAt() != c.Created {
		t.Errorf("generation %d created %d, want 7 and %d", s.Generation(), s.CreatedAt(), c.Created)
	}
	if diff := cmp.Diff(&c.Settings, s.Settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestFrontendLookup(t *testing.T) {
	s := load(t, small())
	for _, c := range []struct {
		name  string
		net   packet.NetworkID
		addr  string
		proto uint8
		port  uint16
		want  uint32 // id, 0: none
	}{
		{"a frontend is found by its key", 0, "10.96.0.10", packet.ProtocolTCP, 80, 11},
		{"protocols of one address are apart", 0, "10.96.0.10", packet.ProtocolUDP, 53, 12},
		{"a port of the other protocol is unknown", 0, "10.96.0.10", packet.ProtocolUDP, 80, 0},
		{"an unknown port is unknown", 0, "10.96.0.10", packet.ProtocolTCP, 81, 0},
		{"an unknown address is unknown", 0, "10.96.0.11", packet.ProtocolTCP, 80, 0},
		{"IPv6 is found", 0, "fd00:10:96::10", packet.ProtocolTCP, 80, 13},
		{"the same address in another network is another frontend", 5, "10.96.0.10", packet.ProtocolTCP, 80, 14},
		{"a port of a node's address is found", 0, "172.30.0.11", packet.ProtocolTCP, 30080, 15},
		{"another port of it is not", 0, "172.30.0.11", packet.ProtocolTCP, 22, 0},
		{"a network without the address has none", 6, "10.96.0.10", packet.ProtocolTCP, 80, 0},
	} {
		a := addr(c.addr)
		var got uint32
		if f := s.Frontend(c.net, &a, c.proto, c.port); f != nil {
			got = f.ID
		}
		if got != c.want {
			t.Errorf("%s: id %d, want %d", c.name, got, c.want)
		}
	}
}

func TestVIPs(t *testing.T) {
	s := load(t, small())
	type vip struct {
		Net  packet.NetworkID
		Addr string
	}
	var got []vip
	for net, a := range s.VIPs {
		got = append(got, vip{net, a.String()})
	}
	want := []vip{{0, "10.96.0.10"}, {0, "fd00:10:96::10"}, {5, "10.96.0.10"}, {0, "198.51.100.1"}, {0, "fd00:198::1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each address once (-want +got):\n%s", diff)
	}
	for range s.VIPs {
		break // must not go on yielding
	}
	for _, c := range []struct {
		net  packet.NetworkID
		addr string
		want bool
	}{
		{0, "10.96.0.10", true}, {5, "10.96.0.10", true}, {6, "10.96.0.10", false},
		{5, "fd00:10:96::10", false}, {0, "10.244.1.3", false}, {0, "172.30.0.11", false}, // narrow
	} {
		if a := addr(c.addr); s.IsVIP(c.net, &a) != c.want {
			t.Errorf("IsVIP(%d, %s) = %v", c.net, c.addr, !c.want)
		}
	}
}

func TestSets(t *testing.T) {
	s := load(t, small())
	f := s.FrontendByID(11)
	if diff := cmp.Diff([]uint32{21, 22}, s.Set(f.Inside)); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint32{21}, s.Set(f.Outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	if got := s.Set(s.FrontendByID(12).Outside); len(got) != 0 {
		t.Errorf("empty set has %v", got)
	}
	for _, alien := range []table.Set{{First: 3, Count: 1}, {First: 0, Count: 4}, {First: 1<<32 - 1, Count: 1<<32 - 1}} {
		if got := s.Set(alien); got != nil {
			t.Errorf("set %v of another snapshot gave %v, want nil", alien, got)
		}
	}
}

func TestLookupsByID(t *testing.T) {
	s := load(t, small())
	if b := s.Backend(22); b == nil || b.Addr != addr("10.244.2.3") {
		t.Errorf("Backend(22) = %v", b)
	}
	if f := s.FrontendByID(13); f == nil || f.Addr != addr("fd00:10:96::10") {
		t.Errorf("FrontendByID(13) = %v", f)
	}
	if p := s.Port(3); p == nil || p.Device() != "veth3" {
		t.Errorf("Port(3) = %v", p)
	}
	for _, id := range []uint32{0, 1, 24, 1<<32 - 1} {
		if s.Backend(id) != nil || s.FrontendByID(id) != nil {
			t.Errorf("id %d is found", id)
		}
	}
	for _, id := range []uint16{0, 5, table.MaxPorts - 1, table.MaxPorts, 1<<16 - 1} {
		if s.Port(id) != nil {
			t.Errorf("port %d is found", id)
		}
	}
}

func TestAddressLookup(t *testing.T) {
	s := load(t, small())
	for _, c := range []struct {
		name string
		net  packet.NetworkID
		addr string
		want uint16 // port, 0: not on this node
	}{
		{"a pod's address lives behind its port", 0, "10.244.1.3", 3},
		{"the same address in another network lives behind another port", 5, "10.244.1.3", 4},
		{"the node's own address lives behind the host port", 0, "fd30::11", 1},
		{"another node's pod does not live here", 0, "10.244.2.3", 0},
		{"a network without the address does not have it", 6, "10.244.1.3", 0},
	} {
		a := addr(c.addr)
		var got uint16
		if x := s.Address(c.net, &a); x != nil {
			got = x.Port
		}
		if got != c.want {
			t.Errorf("%s: port %d, want %d", c.name, got, c.want)
		}
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	s := load(t, many(100, rand.New(rand.NewPCG(3, 4))))
	vip, pod, far := number(10<<24|96<<16, 50), number(10<<24|244<<16, 60), addr("10.128.3.4")
	var sink int
	allocs := testing.AllocsPerRun(100, func() {
		f := s.Frontend(0, &vip, packet.ProtocolTCP, 80)
		for _, id := range s.Set(f.Inside) {
			sink += int(s.Backend(id).Port)
		}
		sink += int(s.FrontendByID(f.ID).Port) + int(s.Address(0, &pod).Port) + int(s.Port(7).ID)
		p, _ := s.Route(0, &far)
		sink += int(p)
		if s.IsVIP(0, &vip) {
			sink++
		}
		for range s.VIPs {
			sink++
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0 (%d)", allocs, sink)
	}
}

// TestLookupsAgainstScan compares every lookup with a linear scan of random contents
// whose keys are drawn from few values, so that near misses are common.
func TestLookupsAgainstScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		c := crowded(rng)
		s := load(t, c)
		for range 300 {
			net, a := packet.NetworkID(rng.IntN(3)), crowdedAddr(rng)
			proto, port := crowdedProtocol(rng), uint16(rng.IntN(4))
			var front, back uint32
			var vip bool
			for _, f := range c.Frontends {
				if f.Network == net && f.Addr == a {
					vip = true
					if f.Protocol == proto && f.Port == port {
						front = f.ID
					}
				}
			}
			if got := s.Frontend(net, &a, proto, port); got == nil && front != 0 || got != nil && got.ID != front {
				t.Fatalf("Frontend(%d, %v, %d, %d) = %v, want id %d", net, a, proto, port, got, front)
			}
			if s.IsVIP(net, &a) != vip {
				t.Fatalf("IsVIP(%d, %v) = %v", net, a, !vip)
			}
			id := rng.Uint32N(60)
			for _, b := range c.Backends {
				if b.ID == id {
					back = id
				}
			}
			if got := s.Backend(id); got == nil && back != 0 || got != nil && got.ID != back {
				t.Fatalf("Backend(%d) = %v, want id %d", id, got, back)
			}
		}
	}
}

func crowdedAddr(rng *rand.Rand) (a packet.Addr) {
	if rng.IntN(2) == 0 {
		return packet.Addr4([4]byte{10, 0, 0, byte(rng.IntN(6))})
	}
	a[0], a[15] = byte(rng.IntN(2)), byte(rng.IntN(6))
	return a
}

func crowdedProtocol(rng *rand.Rand) uint8 {
	return []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP}[rng.IntN(3)]
}

func crowded(rng *rand.Rand) *table.Contents {
	c := &table.Contents{Settings: table.DefaultSettings()}
	type key struct {
		net   packet.NetworkID
		addr  packet.Addr
		proto uint8
		port  uint16
	}
	seen := map[key]bool{}
	for i := range rng.IntN(40) {
		k := key{packet.NetworkID(rng.IntN(3)), crowdedAddr(rng), crowdedProtocol(rng), uint16(rng.IntN(3)) + 1}
		if seen[k] {
			continue
		}
		seen[k] = true
		c.Frontends = append(c.Frontends, table.Frontend{ID: uint32(i) + 1, Network: k.net, Addr: k.addr, Protocol: k.proto, Port: k.port})
		c.Backends = append(c.Backends, table.Backend{ID: uint32(i) + 1, Network: k.net, Addr: k.addr, Protocol: k.proto, Port: k.port})
	}
	rng.Shuffle(len(c.Frontends), func(i, j int) { c.Frontends[i], c.Frontends[j] = c.Frontends[j], c.Frontends[i] })
	return c
}
