package xdp

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// skb is struct __sk_buff (linux/bpf.h) as a test run takes and returns it.
type skb struct {
	Len, PktType, Mark, QueueMapping           uint32
	Protocol, VlanPresent, VlanTCI, VlanProto  uint32
	Priority, IngressIfindex, Ifindex, TCIndex uint32
	Cb                                         [5]uint32
	Hash, TCClassid, Data, DataEnd, NapiID     uint32
	Family, RemoteIP4, LocalIP4                uint32
	RemoteIP6, LocalIP6                        [4]uint32
	RemotePort, LocalPort, DataMeta            uint32
	FlowKeys, Tstamp                           uint64
	WireLen, GSOSegs                           uint32
	Sk                                         uint64
	GSOSize                                    uint32
	TstampType                                 uint8
	_                                          [3]uint8
	HwTstamp                                   uint64
}

// Ids and names of the ports of the test's node.
const (
	podID    = 0x102 // needs both bytes on the trunk
	otherID  = 3
	uplinkID = 4
	sevenID  = 7
)

// node is a node in maps only: two pods and an uplink, none of them attached to anything
// that moves. Its addresses:
//
//	10.1.0.2 fd00::2    pod
//	10.1.0.3 fd00::3    the other pod
//	10.1.0.1 fd00::1    the node itself
//	10.1.7.2            a pod in network 7
//	10.96.0.1 fd96::1   a VIP; 10.96.0.2 port 53/UDP is claimed narrowly
//	10.96.7.7           a VIP of network 7
type node struct {
	o                                 *Objects
	flows                             *conntrack.Table
	pod, other, uplink, seven, second int   // interface indexes
	cause                             Cause // of the last run
}

var (
	podMAC, podGateway     = [6]byte{2, 1, 1, 1, 1, 1}, [6]byte{2, 1, 1, 1, 1, 2}
	otherMAC, otherGateway = [6]byte{2, 2, 2, 2, 2, 1}, [6]byte{2, 2, 2, 2, 2, 2}
	uplinkMAC              = [6]byte{2, 3, 3, 3, 3, 3}
)

// veth makes a pair in the test's namespace and returns the index of its first end.
func veth(t testing.TB, name string) int {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	v := netlink.NewVeth(attrs)
	v.PeerName = name + "p"
	if err := netlink.LinkAdd(v); err != nil {
		t.Fatalf("making %s: %v", name, err)
	}
	t.Cleanup(func() { // by its peer, for some tests replace the first end
		if l, err := netlink.LinkByName(name + "p"); err == nil {
			_ = netlink.LinkDel(l)
		}
	})
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Attrs().Index
}

func portName(s string) (b [16]byte) {
	copy(b[:], s)
	return b
}

func mapped(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

func newNode(t testing.TB, o *Objects) *node {
	t.Helper()
	n := &node{o: o, pod: veth(t, "tpod"), other: veth(t, "tother"), uplink: veth(t, "tup.7"), seven: veth(t, "tseven")}
	flows, _, err := conntrack.Map(o.FlowMemory())
	if err != nil {
		t.Fatalf("flow table: %v", err)
	}
	n.flows = flows
	must(t, o.SetFlowKeys(flows.Keys(), flows.Buckets()))
	must(t, o.SyncPorts(n.ports()))
	must(t, o.SyncSources(n.addresses()))
	must(t, o.SyncClaims(n.claims()))
	must(t, o.setBackends(everybody()))
	n.setTrunk(t)
	return n
}

// everybody is the filter of backends that lets nothing pass unseen.
func everybody() (f filter) {
	for i := range f {
		f[i] = ^uint64(0)
	}
	return f
}

func (n *node) ports() []table.Port {
	return []table.Port{
		{ID: table.HostPort, Kind: table.PortHost, Name: portName("lace0")},
		{ID: podID, Kind: table.PortPod, Ifindex: uint32(n.pod), PeerMAC: podMAC, HostMAC: podGateway, MTU: 1500, Name: portName("tpod")},
		{ID: otherID, Kind: table.PortPod, Ifindex: uint32(n.other), PeerMAC: otherMAC, HostMAC: otherGateway, MTU: 1400, Name: portName("tother")},
		{ID: sevenID, Kind: table.PortPod, Ifindex: uint32(n.seven), Network: 7, MTU: 1500, Name: portName("tseven")},
		{ID: uplinkID, Kind: table.PortUplink, Ifindex: uint32(n.uplink), HostMAC: uplinkMAC, MTU: 1500, Name: portName("tup.7")},
	}
}

func (n *node) addresses() (all []table.Address) {
	for s, port := range map[string]uint16{
		"10.1.0.2": podID, "fd00::2": podID, "10.1.0.3": otherID, "fd00::3": otherID,
		"10.1.0.1": table.HostPort, "fd00::1": table.HostPort,
	} {
		all = append(all, table.Address{Addr: mapped(s), Port: port})
	}
	return append(all, table.Address{Addr: mapped("10.1.7.2"), Network: 7, Port: sevenID})
}

func (n *node) claims() []Claim {
	return []Claim{
		{Addr: mapped("10.96.0.1")}, {Addr: mapped("fd96::1")},
		{Addr: mapped("10.96.7.7"), Network: 7},
		{Addr: mapped("10.96.0.2"), Protocol: packet.ProtocolUDP, Port: 53},
	}
}

// setTrunk stands in for AttachTrunk where nothing moves: lo is as good as lace0.
func (n *node) setTrunk(t testing.TB) {
	t.Helper()
	s := n.o.settings
	s.Trunk, s.Queues, s.MTU, s.MAC = 1, 1, 1500, lace0MAC
	must(t, n.o.set(s))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
