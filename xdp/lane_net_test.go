package xdp

import (
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/table"
)

// laneNet is a wire whose far ends are real hosts, with a second pod, the lane on, and a
// stand-in for Go. Its addresses are those of the families; besides:
//
//	10.1.0.3 fd00::3            other, behind tother or below a bridge
//	2001:db8::1, 2001:db8::9    the node's uplink and the outside
type laneNet struct {
	*wire
	toOther *end
}

// newLaneNet makes it. bridge: the second pod is below a bridge.
func newLaneNet(t *testing.T, bridge bool) *laneNet {
	t.Helper()
	l := &laneNet{wire: newWire(t)}
	for name := range map[string]bool{"tpod": true, "tup.7": true} {
		link, err := netlink.LinkByName(name)
		must(t, err)
		must(t, netlink.LinkSetMTU(link, 1500))
	}
	l.addAddress(t, l.uplink, "2001:db8::1/64")
	l.addNeighbour(t, l.uplink, "2001:db8::9", outMAC)
	gateway := l.addOther(t, bridge)
	must(t, l.toPod.become("10.1.0.2/32", "fd00::2/128", podGateway))
	must(t, l.toOther.become("10.1.0.3/32", "fd00::3/128", gateway))
	must(t, l.toOut.become("192.0.2.9/32", "2001:db8::9/128", uplinkMAC))
	pod := table.Port{ID: otherID, Kind: table.PortPod, Ifindex: uint32(l.other), PeerMAC: otherMAC, HostMAC: gateway, MTU: 1500, Generation: 3, Name: portName("tother")}
	ports := []table.Port{
		{ID: table.HostPort, Kind: table.PortHost, MTU: 1500, Generation: 3, Name: portName("lace0")},
		{ID: podID, Kind: table.PortPod, Ifindex: uint32(l.pod), PeerMAC: podMAC, HostMAC: podGateway, MTU: 1500, Generation: 3, Name: portName("tpod")},
		pod,
		{ID: uplinkID, Kind: table.PortUplink, Ifindex: uint32(l.uplink), HostMAC: uplinkMAC, MTU: 1500, Generation: 3, Name: portName("tup.7")},
	}
	must(t, l.o.SyncPorts(ports))
	must(t, l.o.SyncSources(append(l.addresses(),
		table.Address{Addr: mapped("192.0.2.1"), Port: table.HostPort}, table.Address{Addr: mapped("2001:db8::1"), Port: table.HostPort})))
	must(t, l.o.SyncGenerations(l.tables(t, func(c *table.Contents) { c.Ports = ports })))
	must(t, l.o.SetLane(true))
	l.serve(t)
	return l
}

// addOther makes the second pod and returns the address of its gateway.
func (l *laneNet) addOther(t *testing.T, bridge bool) (gateway [6]byte) {
	t.Helper()
	l.other, l.toOther = newEnd(t, "tother", otherGateway, otherMAC)
	link, err := netlink.LinkByIndex(l.other)
	must(t, err)
	must(t, netlink.LinkSetMTU(link, 1500))
	device, gateway := l.other, otherGateway
	if bridge {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = "tbridge", bridgeMAC[:]
		b := &netlink.Bridge{LinkAttrs: attrs}
		must(t, netlink.LinkAdd(b))
		t.Cleanup(func() { _ = netlink.LinkDel(b) })
		must(t, netlink.LinkSetMaster(link, b))
		must(t, netlink.LinkSetUp(b))
		device, gateway = b.Index, bridgeMAC
	}
	for _, r := range []struct{ to, src string }{{"10.1.0.3/32", "10.1.0.1"}, {"fd00::3/128", "fd00::1"}} {
		_, dst, err := net.ParseCIDR(r.to)
		must(t, err)
		must(t, netlink.RouteReplace(&netlink.Route{LinkIndex: device, Dst: dst, Src: net.ParseIP(r.src), Scope: netlink.SCOPE_LINK}))
		l.addNeighbour(t, device, dst.IP.String(), otherMAC)
	}
	return gateway
}

func (l *laneNet) addAddress(t *testing.T, ifindex int, s string) {
	t.Helper()
	a, err := netlink.ParseAddr(s)
	must(t, err)
	a.Flags = unix.IFA_F_NODAD
	must(t, netlink.AddrReplace(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}, a))
}

func (l *laneNet) addNeighbour(t *testing.T, ifindex int, ip string, mac [6]byte) {
	t.Helper()
	must(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: ifindex, State: netlink.NUD_PERMANENT, IP: net.ParseIP(ip), HardwareAddr: mac[:]}))
}

// become gives eth0 of the far end addresses, and routes everything to one neighbour.
func (e *end) become(addr4, addr6 string, gateway [6]byte) error {
	return e.ns.do(func() error {
		for _, name := range []string{"all", "default", "eth0", "lo"} {
			if err := sysctl("net/ipv6/conf/"+name+"/disable_ipv6", "0"); err != nil {
				return err
			}
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(l, 1500); err != nil {
			return err
		}
		for _, f := range []struct{ addr, all, gateway string }{{addr4, "0.0.0.0/0", "169.254.1.1"}, {addr6, "::/0", "fe80::1ace"}} {
			if err := routeAll(l, f.addr, f.all, f.gateway, gateway); err != nil {
				return fmt.Errorf("%s: %w", f.addr, err)
			}
		}
		return nil
	})
}

func routeAll(l netlink.Link, addr, all, via string, mac [6]byte) error {
	a, err := netlink.ParseAddr(addr)
	if err != nil {
		return err
	}
	a.Flags = unix.IFA_F_NODAD
	if err := netlink.AddrReplace(l, a); err != nil {
		return err
	}
	ip := net.ParseIP(via)
	if err := netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: ip, HardwareAddr: mac[:]}); err != nil {
		return err
	}
	_, dst, err := net.ParseCIDR(all)
	if err != nil {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Gw: ip, Flags: int(netlink.FLAG_ONLINK)})
}

// offloads sets segmentation on the far end, receive offload on the near one.
func (l *laneNet) offloads(t *testing.T, e *end, near string, segment, checksum, merge uint32) {
	t.Helper()
	const getTSO, setTSO, getGSO, setGSO = 0x1e, 0x1f, 0x23, 0x24
	must(t, e.ns.do(func() error {
		if err := setOffload("eth0", getTxChecksum, setTxChecksum, checksum); err != nil {
			return err
		}
		if err := setOffload("eth0", getTSO, setTSO, segment); err != nil {
			return err
		}
		return setOffload("eth0", getGSO, setGSO, segment)
	}))
	must(t, setOffload(near, getGRO, setGRO, merge))
}
