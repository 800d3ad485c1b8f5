package matrix

import (
	"net/netip"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// places are who speaks in a case, by address of each family.
var places = map[string][2]string{
	"pod":      {"10.244.1.2", "fd00:10:244:1::2"}, // a pod of this node
	"web":      {"10.244.1.3", "fd00:10:244:1::3"}, // another
	"node":     {"172.30.0.11", "fd30::11"},        // this node
	"outside":  {"172.30.0.100", "fd30::100"},      // a client beyond the uplink
	"remote":   {"10.244.2.3", "fd00:10:244:2::3"}, // a pod of another node
	"cluster":  {"10.96.0.10", "fd00:10:96::10"},   // a ClusterIP
	"external": {"198.18.0.10", "2001:db8:18::10"}, // an externalIP, or a load balancer's address
}

// PortIDs are the ports of the node: the node itself, two pods, the uplink.
var PortIDs = map[string]uint16{"node": 1, "pod": 2, "web": 3, "wire": 4}

// Ports for sources that are rewritten.
const firstPort, lastPort = 61000, 65535

// Addr is the address of a place in a family ("v4", "v6").
func Addr(place, family string) netip.Addr {
	i := 0
	if family == "v6" {
		i = 1
	}
	return netip.MustParseAddr(places[place][i])
}

// Way is the port behind which a place lies.
func Way(place string) string {
	if _, ok := PortIDs[place]; ok {
		return place
	}
	return "wire"
}

// Node says how the node of the cases is set up.
type Node struct {
	Generation uint64
	Lane       bool                      // established flows are handed over to the kernel
	Stack      bool                      // ports ask for delivery by the node's own stack
	Port       func(string, *table.Port) // fills in what a port's device is; nil: made up
}

// Tables are those of every case. Of each kind of frontend, port 80 leads to web, 81 to pod,
// 90 to the node, 100 to remote, and 70 to nobody; 1,000 more leads to the same. Node ports
// are 30,000 above.
func (n Node) Tables() *table.Contents {
	c := &table.Contents{Generation: n.Generation, Settings: table.DefaultSettings()}
	c.Settings.SourcePortFirst, c.Settings.SourcePortLast = firstPort, lastPort
	c.Settings.NodeAddr4, c.Settings.NodeAddr6 = address("node", "v4"), address("node", "v6")
	if !n.Lane {
		c.Settings.Lane = 0
	}
	for _, name := range []string{"node", "pod", "web", "wire"} {
		c.Ports = append(c.Ports, n.port(name))
	}
	uplink := PortIDs["wire"]
	c.Routes = []table.Route{{Prefix: packet.Addr4([4]byte{}), Bits: 96, Port: uplink}, {Port: uplink}}
	for _, family := range []string{"v4", "v6"} {
		for _, name := range []string{"node", "pod", "web"} {
			c.Addresses = append(c.Addresses, table.Address{Addr: address(name, family), Port: PortIDs[name]})
		}
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP} {
			serve(c, family, protocol)
		}
	}
	return c
}

func address(place, family string) packet.Addr { return packet.AddrFrom(Addr(place, family)) }

func (n Node) port(name string) table.Port {
	p := table.Port{ID: PortIDs[name], Kind: table.PortPod, Ifindex: uint32(PortIDs[name]), MTU: 1500, Generation: 1}
	switch name {
	case "node":
		p.Kind = table.PortHost
	case "wire":
		p.Kind = table.PortUplink
	}
	if n.Stack && name != "node" {
		p.Flags = table.PortStack
	}
	if n.Port != nil {
		n.Port(name, &p)
	} else if err := p.SetDevice(name); err != nil {
		panic(err) // the names are above
	}
	return p
}

// serve adds the frontends of one family and protocol, and their backends.
func serve(c *table.Contents, family string, protocol uint8) {
	for port, backend := range map[uint16]string{80: "web", 81: "pod", 90: "node", 100: "remote", 70: ""} {
		var set table.Set
		if backend != "" {
			id := uint32(len(c.Backends) + 1)
			set = table.Set{First: uint32(len(c.BackendIDs)), Count: 1}
			c.BackendIDs = append(c.BackendIDs, id)
			c.Backends = append(c.Backends, table.Backend{ID: id, Addr: address(backend, family), Port: 8080, Protocol: protocol, Generation: 1, Serving: 1})
		}
		for _, at := range []uint16{port, port + 1000} {
			for place, above := range map[string]uint16{"cluster": 0, "external": 0, "node": 30000} {
				f := table.Frontend{
					ID: uint32(len(c.Frontends) + 1), Addr: address(place, family), Port: at + above, Protocol: protocol, Generation: 1,
					Inside: set, Outside: set, Keep: table.Run{First: set.First, Count: set.Count},
				}
				if place == "node" {
					f.Flags = table.Narrow
				}
				c.Frontends = append(c.Frontends, f)
			}
		}
	}
}
