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

// network is a node, which is the test's own namespace, with two pods.
//
//	172.30.0.11   fd30::11           the node
//	10.244.1.2    fd00:10:244:1::2   client
//	10.244.1.3    fd00:10:244:1::3   web
//	10.96.0.10    fd00:10:96::10     VIP, port 80 over TCP and UDP, backend web:8080
type network struct {
	t           *testing.T
	client, web *pod
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
	nodeAddrs = [2]netip.Addr{netip.MustParseAddr("172.30.0.11"), netip.MustParseAddr("fd30::11")}
	vips      = [2]netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")}
)

func newNetwork(t *testing.T) *network {
	t.Helper()
	testenv.Privileged(t)
	n := &network{t: t}
	for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		n.must(os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0))
	}
	lo := n.link("lo")
	n.must(netlink.LinkSetUp(lo))
	for _, a := range nodeAddrs {
		n.address(lo, a)
	}
	n.client = n.pod("client", 2)
	n.web = n.pod("web", 3)
	return n
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
	p.ns = newNamespace(n.t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = p.device, p.gateway
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerHardwareAddr, v.PeerNamespace = "eth0", p.mac, netlink.NsFd(p.ns.Fd())
	n.must(netlink.LinkAdd(v))
	n.t.Cleanup(func() { _ = netlink.LinkDel(v) })
	n.must(netlink.LinkSetUp(v))
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

func (n *network) neighbour(l netlink.Link, a netip.Addr, mac net.HardwareAddr) {
	n.t.Helper()
	n.must(netlink.NeighSet(&netlink.Neigh{
		LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: mac,
	}))
}

// newNamespace makes a network namespace that lives as long as the file.
func newNamespace(t *testing.T) *os.File {
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
	for i, p := range []*pod{n.client, n.web} {
		port := table.Port{
			ID: uint16(i + 2), Kind: table.PortPod, MTU: 1500, Generation: 1,
			Ifindex: uint32(n.link(p.device).Attrs().Index),
			HostMAC: [6]byte(p.gateway), PeerMAC: [6]byte(p.mac),
		}
		n.must(port.SetDevice(p.device))
		c.Ports = append(c.Ports, port)
		for _, a := range p.addrs {
			c.Addresses = append(c.Addresses, table.Address{Addr: packet.AddrFrom(a), Port: port.ID})
		}
	}
	for _, a := range nodeAddrs {
		c.Addresses = append(c.Addresses, table.Address{Addr: packet.AddrFrom(a), Port: table.HostPort})
	}
	for i, vip := range vips {
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP} {
			id := uint32(len(c.Frontends) + 1)
			set := table.Set{First: uint32(len(c.BackendIDs)), Count: 1}
			c.BackendIDs = append(c.BackendIDs, id)
			c.Frontends = append(c.Frontends, table.Frontend{
				ID: id, Addr: packet.AddrFrom(vip), Port: 80, Protocol: protocol, Generation: 1, Inside: set, Outside: set,
			})
			c.Backends = append(c.Backends, table.Backend{
				ID: id, Addr: packet.AddrFrom(n.web.addrs[i]), Port: 8080, Protocol: protocol, Generation: 1, Serving: 1,
			})
		}
	}
	return c
}

// serveEcho answers on web:8080 over TCP and UDP in both families until the test ends.
func (n *network) serveEcho() {
	n.t.Helper()
	n.in(n.web, func() {
		for _, a := range n.web.addrs {
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
