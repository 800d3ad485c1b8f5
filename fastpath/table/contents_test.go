package table_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

func port(id uint16, kind table.PortKind, device string) table.Port {
	p := table.Port{ID: id, Kind: kind, MTU: 1500, Ifindex: uint32(id) + 10}
	if err := p.SetDevice(device); err != nil {
		panic(err)
	}
	return p
}

func route(net packet.NetworkID, prefix string, port uint16) table.Route {
	p := netip.MustParsePrefix(prefix)
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	return table.Route{Network: net, Prefix: packet.AddrFrom(p.Addr()), Bits: uint8(bits), Port: port}
}

// small is a node with one service in two families, as a reader would draw it.
func small() *table.Contents {
	s := table.DefaultSettings()
	s.Lane = 0 // as in the golden file, whatever the default is
	s.NodeAddr4, s.NodeAddr6 = addr("172.30.0.11"), addr("fd30::11")
	return &table.Contents{
		Generation: 7,
		Created:    1_700_000_000_000_000_000,
		Settings:   s,
		Ports: []table.Port{
			port(1, table.PortHost, "lace0"), port(2, table.PortUplink, "eth0"),
			port(3, table.PortPod, "veth3"), port(4, table.PortPod, "veth4"),
		},
		Frontends: []table.Frontend{
			{ID: 11, Addr: addr("10.96.0.10"), Port: 80, Protocol: packet.ProtocolTCP, Generation: 2,
				Inside: table.Set{First: 0, Count: 2}, Outside: table.Set{First: 0, Count: 1}},
			{ID: 12, Addr: addr("10.96.0.10"), Port: 53, Protocol: packet.ProtocolUDP,
				Inside: table.Set{Empty: table.Refuse}, Outside: table.Set{Empty: table.Drop}},
			{ID: 13, Addr: addr("fd00:10:96::10"), Port: 80, Protocol: packet.ProtocolTCP,
				Inside: table.Set{First: 2, Count: 1}, Outside: table.Set{First: 2, Count: 1}},
			{ID: 14, Network: 5, Addr: addr("10.96.0.10"), Port: 80, Protocol: packet.ProtocolTCP},
			{ID: 15, Addr: addr("172.30.0.11"), Port: 30080, Protocol: packet.ProtocolTCP, Flags: table.Narrow,
				Inside: table.Set{First: 0, Count: 2}, Outside: table.Set{First: 0, Count: 1},
				Session: 0x5e55, Affinity: 10800, Keep: table.Run{First: 0, Count: 2}},
			{ID: 16, Addr: addr("198.51.100.1"), Port: 80, Protocol: packet.ProtocolTCP, Flags: table.Restricted,
				Inside: table.Set{First: 0, Count: 2}, Outside: table.Set{First: 0, Count: 1}, Sources: table.Run{First: 1, Count: 2}},
			{ID: 17, Addr: addr("fd00:198::1"), Port: 80, Protocol: packet.ProtocolTCP, Flags: table.Restricted,
				Sources: table.Run{First: 0, Count: 1}},
		},
		BackendIDs: []uint32{21, 22, 23},
		Ranges: []table.Range{
			{First: addr("fd30::"), Last: addr("fd30::ff")},
			{First: addr("10.244.0.0"), Last: addr("10.244.255.255")},
			{First: addr("172.30.0.100"), Last: addr("172.30.0.100")},
		},
		Backends: []table.Backend{
			{ID: 21, Addr: addr("10.244.1.3"), Port: 8080, Protocol: packet.ProtocolTCP, Serving: 1},
			{ID: 22, Addr: addr("10.244.2.3"), Port: 8080, Protocol: packet.ProtocolTCP, Generation: 9},
			{ID: 23, Addr: addr("fd00:10:244:1::3"), Port: 8080, Protocol: packet.ProtocolTCP, Serving: 1},
		},
		Addresses: []table.Address{
			{Addr: addr("172.30.0.11"), Port: 1}, {Addr: addr("fd30::11"), Port: 1},
			{Addr: addr("10.244.1.3"), Port: 3}, {Addr: addr("fd00:10:244:1::3"), Port: 3},
			{Addr: addr("10.244.1.3"), Network: 5, Port: 4},
		},
		Routes: []table.Route{
			route(0, "0.0.0.0/0", 2), route(0, "10.244.2.0/24", 2), route(0, "fd00:10:244:2::/64", 2),
		},
	}
}

// many is a node with n services of ten backends each, addresses drawn from rng.
func many(n int, rng *rand.Rand) *table.Contents {
	c := &table.Contents{Generation: 1, Created: 1, Settings: table.DefaultSettings(),
		Ports: []table.Port{port(1, table.PortHost, "lace0"), port(2, table.PortUplink, "eth0")}}
	for id := uint16(3); id < 113; id++ {
		c.Ports = append(c.Ports, port(id, table.PortPod, "veth"))
		c.Addresses = append(c.Addresses, table.Address{Addr: number(10<<24|244<<16, uint32(id)), Port: id})
	}
	for node := range uint32(500) {
		c.Routes = append(c.Routes, table.Route{Prefix: number(10<<24|128<<16, node<<8), Bits: 120, Port: 2})
	}
	for i := range uint32(n) {
		set := table.Set{First: 10 * i, Count: 10}
		c.Frontends = append(c.Frontends, table.Frontend{ID: i + 1, Addr: number(10<<24|96<<16, i), Port: 80,
			Protocol: packet.ProtocolTCP, Inside: set, Outside: set})
		for j := range uint32(10) {
			id := 10*i + j + 1
			c.Backends = append(c.Backends, table.Backend{ID: id, Addr: number(10<<24|128<<16, rng.Uint32N(1<<17)),
				Port: 8080, Protocol: packet.ProtocolTCP, Serving: 1})
			c.BackendIDs = append(c.BackendIDs, id)
		}
	}
	return c
}

// number is the IPv4 address first+n.
func number(first, n uint32) packet.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], first+n)
	return packet.Addr4(b)
}

func encode(t testing.TB, c *table.Contents) []byte {
	t.Helper()
	b, err := table.Encode(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t testing.TB, c *table.Contents) *table.Snapshot {
	t.Helper()
	s, err := table.Load(encode(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
