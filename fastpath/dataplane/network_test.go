package dataplane

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// network is a node, which is the test's own namespace, with two pods and an uplink. At
// the other end of the wire are an outside client and a pod of another node.
//
//	172.30.0.11   fd30::11           the node, on its uplink
//	10.244.1.2    fd00:10:244:1::2   client
//	10.244.1.3    fd00:10:244:1::3   web
//	172.30.0.100  fd30::100          outside
//	10.244.2.3    fd00:10:244:2::3   remote, in the same namespace as outside
//	10.96.0.10    fd00:10:96::10     VIP; over TCP and UDP each, port 80 leads to web, 90 to
//	                                 the node itself, 100 to remote, port 8080 of each
type network struct {
	t                 testing.TB
	client, web, wire *pod
}

// pod is a namespace behind a veth.
type pod struct {
	ns      *os.File
	device  string // of the node
	mac     net.HardwareAddr
	gateway net.HardwareAddr
	addrs   [2]netip.Addr
}

var (
	nodeAddrs   = pair("172.30.0.11", "fd30::11")
	remoteAddrs = pair("10.244.2.3", "fd00:10:244:2::3")
	vips        = pair("10.96.0.10", "fd00:10:96::10")
)

func pair(v4, v6 string) [2]netip.Addr {
	return [2]netip.Addr{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

// Ports of the VIP, by where they lead.
const (
	toWeb    = 80
	toNode   = 90
	toRemote = 100
)

func newNetwork(t testing.TB) *network {
	t.Helper()
	testenv.Privileged(t)
	n := &network{t: t}
	n.forward()
	n.client = n.pod("client", 2)
	n.web = n.pod("web", 3)
	n.uplink()
	return n
}

// forward makes the node a router.
func (n *network) forward() {
	n.t.Helper()
	for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		n.must(os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0))
	}
	n.must(netlink.LinkSetUp(n.link("lo")))
}

// uplink connects the node with the wire.
func (n *network) uplink() {
	n.t.Helper()
	p := &pod{device: "up0", mac: net.HardwareAddr{2, 0, 0, 0, 3, 1}, gateway: net.HardwareAddr{2, 0, 0, 0, 3, 2},
		addrs: pair("172.30.0.100", "fd30::100")}
	v := n.veth(p)
	for i, a := range nodeAddrs {
		n.must(netlink.AddrReplace(v, &netlink.Addr{IPNet: subnet(a, 24+40*i), Flags: unix.IFA_F_NODAD}))
		n.neighbour(v, p.addrs[i], p.mac)
		remote := subnet(remoteAddrs[i], 24+40*i)
		remote.IP = remote.IP.Mask(remote.Mask)
		n.must(netlink.RouteReplace(&netlink.Route{LinkIndex: v.Index, Dst: remote, Gw: p.addrs[i].AsSlice()}))
	}
	n.in(p, func() {
		eth0 := n.link("eth0")
		n.must(netlink.LinkSetUp(eth0))
		for i, a := range p.addrs {
			n.must(netlink.AddrReplace(eth0, &netlink.Addr{IPNet: subnet(a, 24+40*i), Flags: unix.IFA_F_NODAD}))
			n.address(eth0, remoteAddrs[i])
			n.neighbour(eth0, nodeAddrs[i], p.gateway)
			n.must(netlink.RouteReplace(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: nodeAddrs[i].AsSlice()}))
		}
	})
	n.wire = p
}

// subnet is the prefix of a with a length.
func subnet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *network) link(name string) netlink.Link {
	n.t.Helper()
	l, err := netlink.LinkByName(name)
	n.must(err)
	return l
}

func (n *network) address(l netlink.Link, a netip.Addr) {
	n.t.Helper()
	n.must(netlink.AddrReplace(l, &netlink.Addr{IPNet: host(a), Flags: unix.IFA_F_NODAD}))
}

// host is the prefix of a alone.
func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// pod makes a pod with a route to everywhere over its veth.
func (n *network) pod(name string, last byte) *pod {
	n.t.Helper()
	p := &pod{
		device: "v" + name, mac: net.HardwareAddr{2, 0, 0, 0, 1, last}, gateway: net.HardwareAddr{2, 0, 0, 0, 2, last},
		addrs: [2]netip.Addr{netip.AddrFrom4([4]byte{10, 244, 1, last}), netip.MustParseAddr("fd00:10:244:1::" + string('0'+rune(last)))},
	}
	v := n.veth(p)
	for _, a := range p.addrs {
		n.must(netlink.RouteReplace(&netlink.Route{LinkIndex: v.Index, Dst: host(a), Scope: netlink.SCOPE_LINK}))
		n.neighbour(v, a, p.mac)
	}
	n.in(p, func() {
		for _, name := range []string{"lo", "eth0"} {
			n.must(netlink.LinkSetUp(n.link(name)))
		}
		eth0 := n.link("eth0")
		for i, a := range p.addrs {
			n.address(eth0, a)
			gateway := [2]string{"169.254.1.1", "fe80::1"}[i]
			n.neighbour(eth0, netip.MustParseAddr(gateway), p.gateway)
			n.must(netlink.RouteReplace(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: net.ParseIP(gateway), Flags: int(netlink.FLAG_ONLINK)}))
		}
	})
	return p
}

// veth makes the pod's namespace and the pair that leads to it.
func (n *network) veth(p *pod) *netlink.Veth {
	n.t.Helper()
	p.ns = newNamespace(n.t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = p.device, p.gateway
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerHardwareAddr, v.PeerNamespace = "eth0", p.mac, netlink.NsFd(p.ns.Fd())
	n.must(netlink.LinkAdd(v))
	n.t.Cleanup(func() { _ = netlink.LinkDel(v) })
	n.must(netlink.LinkSetUp(v))
	return v
}

func (n *network) neighbour(l netlink.Link, a netip.Addr, mac net.HardwareAddr) {
	n.t.Helper()
	n.must(netlink.NeighSet(&netlink.Neigh{
		LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: mac,
	}))
}

// newNamespace makes a network namespace that lives as long as the file.
func newNamespace(t testing.TB) *os.File {
	t.Helper()
	type made struct {
		f   *os.File
		err error
	}
	c := make(chan made)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			c <- made{nil, err}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		c <- made{f, err}
	}()
	m := <-c
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Cleanup(func() { m.f.Close() })
	return m.f
}

// in calls f on a thread inside the pod's namespace; sockets made there stay there. nil
// is the node.
func (n *network) in(p *pod, f func()) {
	n.t.Helper()
	if p == nil {
		f()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			defer close(done)
			f()
			return
		}
		done <- err
	}()
	n.must(<-done)
}

// contents are the tables of the node.
func (n *network) contents(generation uint64) *table.Contents {
	n.t.Helper()
	c := &table.Contents{Generation: generation, Settings: table.DefaultSettings()}
	c.Settings.NodeAddr4, c.Settings.NodeAddr6 = packet.AddrFrom(nodeAddrs[0]), packet.AddrFrom(nodeAddrs[1])
	c.Ports = []table.Port{{ID: table.HostPort, Kind: table.PortHost, Generation: 1}}
	for i, p := range []*pod{n.client, n.web, n.wire} {
		port := table.Port{
			ID: uint16(i + 2), Kind: table.PortPod, MTU: 1500, Generation: 1,
			Ifindex: uint32(n.link(p.device).Attrs().Index),
			HostMAC: [6]byte(p.gateway), PeerMAC: [6]byte(p.mac),
		}
		n.must(port.SetDevice(p.device))
		if p == n.wire {
			port.Kind, port.PeerMAC = table.PortUplink, [6]byte{}
			c.Routes = []table.Route{{Prefix: packet.Addr4([4]byte{}), Bits: 96, Port: port.ID}, {Port: port.ID}}
		}
		c.Ports = append(c.Ports, port)
		for _, a := range p.addrs {
			if p != n.wire {
				c.Addresses = append(c.Addresses, table.Address{Addr: packet.AddrFrom(a), Port: port.ID})
			}
		}
	}
	for i, vip := range vips {
		c.Addresses = append(c.Addresses, table.Address{Addr: packet.AddrFrom(nodeAddrs[i]), Port: table.HostPort})
		lead(c, vip, toWeb, n.web.addrs[i])
		lead(c, vip, toNode, nodeAddrs[i])
		lead(c, vip, toRemote, remoteAddrs[i])
	}
	return c
}

// lead adds a frontend of both protocols with one backend.
func lead(c *table.Contents, vip netip.Addr, port uint16, backend netip.Addr) {
	for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP} {
		id := uint32(len(c.Frontends) + 1)
		set := table.Set{First: uint32(len(c.BackendIDs)), Count: 1}
		c.BackendIDs = append(c.BackendIDs, id)
		c.Frontends = append(c.Frontends, table.Frontend{
			ID: id, Addr: packet.AddrFrom(vip), Port: port, Protocol: protocol, Generation: 1, Inside: set, Outside: set,
		})
		c.Backends = append(c.Backends, table.Backend{
			ID: id, Addr: packet.AddrFrom(backend), Port: 8080, Protocol: protocol, Generation: 1, Serving: 1,
		})
	}
}

// serveEcho answers on port 8080 of web, the node and remote, over TCP and UDP in both
// families, until the test ends.
func (n *network) serveEcho() {
	n.t.Helper()
	n.echo(n.web, n.web.addrs)
	n.echo(nil, nodeAddrs)
	n.echo(n.wire, remoteAddrs)
}

func (n *network) echo(p *pod, addrs [2]netip.Addr) {
	n.t.Helper()
	n.in(p, func() {
		for _, a := range addrs {
			at := netip.AddrPortFrom(a, 8080)
			l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
			n.must(err)
			n.t.Cleanup(func() { l.Close() })
			go echoStreams(l)
			u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
			n.must(err)
			n.t.Cleanup(func() { u.Close() })
			go echoDatagrams(u)
		}
	})
}

func echoStreams(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 1<<16)
			for {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				if _, err := c.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func echoDatagrams(u *net.UDPConn) {
	b := make([]byte, 1<<16)
	for {
		n, from, err := u.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		_, _ = u.WriteToUDPAddrPort(b[:n], from)
	}
}
