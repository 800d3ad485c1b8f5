// Package netdevtest gives tests network namespaces of their own.
//
// It owns a few unnamed namespaces per test, each with a thread that stays inside, so
// that nothing shows on the machine and everything vanishes with the test. It must
// never be used outside tests.
//
// Cost: some milliseconds per namespace.
package netdevtest

import (
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/slowpath/netdev"
)

// Space is one network namespace. Its methods fail the test of New on any error.
type Space struct {
	t    testing.TB
	jobs chan func()
	ns   netns.NsHandle
	h    *netlink.Handle
}

// New makes a namespace with its loopback up. The test is skipped where namespaces
// cannot be made.
func New(t testing.TB) *Space {
	t.Helper()
	testenv.Privileged(t)
	s := &Space{t: t, jobs: make(chan func())}
	ready := make(chan error)
	go s.live(s.jobs, ready)
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Up("lo")
	return s
}

// live is the thread inside; it ends with the namespace.
func (s *Space) live(jobs <-chan func(), ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread dies with the goroutine
	var err error
	if s.ns, err = netns.New(); err == nil {
		s.h, err = netlink.NewHandle()
	}
	ready <- err
	if err != nil {
		return
	}
	for f := range jobs {
		f()
	}
}

// Close ends the namespace; its veths vanish with their other ends. The second call
// does nothing.
func (s *Space) Close() {
	if s.jobs == nil {
		return
	}
	close(s.jobs)
	s.jobs = nil
	s.h.Close()
	_ = s.ns.Close()
}

// Do runs f on the thread inside the namespace and waits for it.
func (s *Space) Do(f func()) {
	done := make(chan struct{})
	s.jobs <- func() { defer close(done); f() }
	<-done
}

// Stack opens the namespace's network stack.
func (s *Space) Stack() *netdev.Kernel {
	s.t.Helper()
	var k *netdev.Kernel
	var err error
	s.Do(func() { k, err = netdev.Open() })
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(k.Close)
	return k
}

// Set writes a sysctl of the namespace, such as net/ipv4/ip_forward.
func (s *Space) Set(name, value string) {
	s.t.Helper()
	var err error
	s.Do(func() { err = os.WriteFile("/proc/sys/"+name, []byte(value), 0) })
	s.must("sysctl "+name, err)
}

// Veth makes a veth here whose other end is in the other namespace; both are up.
func (s *Space) Veth(name string, other *Space, peer string) {
	s.t.Helper()
	v := netlink.NewVeth(netlink.LinkAttrs{Name: name, TxQLen: 1000})
	v.PeerName, v.PeerNamespace = peer, netlink.NsFd(other.ns)
	s.must("veth "+name, s.h.LinkAdd(v))
	s.Up(name)
	other.Up(peer)
}

// Bridge makes a bridge, up.
func (s *Space) Bridge(name string) {
	s.t.Helper()
	s.must("bridge "+name, s.h.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name, TxQLen: 1000}}))
	s.Up(name)
}

// Enslave makes the device a port of the bridge.
func (s *Space) Enslave(name, bridge string) {
	s.t.Helper()
	s.must("port "+name, s.h.LinkSetMaster(s.link(name), s.link(bridge)))
}

// Up sets the device up.
func (s *Space) Up(name string) {
	s.t.Helper()
	s.must("up "+name, s.h.LinkSetUp(s.link(name)))
}

// Down sets the device down.
func (s *Space) Down(name string) {
	s.t.Helper()
	s.must("down "+name, s.h.LinkSetDown(s.link(name)))
}

// Remove deletes the device.
func (s *Space) Remove(name string) {
	s.t.Helper()
	s.must("remove "+name, s.h.LinkDel(s.link(name)))
}

// MTU sets the device's MTU.
func (s *Space) MTU(name string, mtu int) {
	s.t.Helper()
	s.must("mtu "+name, s.h.LinkSetMTU(s.link(name), mtu))
}

// Address gives the device an address, usable at once.
func (s *Space) Address(name, prefix string) {
	s.t.Helper()
	a := s.parse(prefix)
	a.Flags = 0x02 // IFA_F_NODAD
	s.must("address "+prefix, s.h.AddrAdd(s.link(name), a))
}

// RemoveAddress takes an address away.
func (s *Space) RemoveAddress(name, prefix string) {
	s.t.Helper()
	s.must("address "+prefix, s.h.AddrDel(s.link(name), s.parse(prefix)))
}

// Route adds a route; an empty gateway means on the link.
func (s *Space) Route(dst, gateway, device string) {
	s.t.Helper()
	s.must("route "+dst, s.h.RouteReplace(s.route(dst, gateway, device)))
}

// RemoveRoute deletes a route.
func (s *Space) RemoveRoute(dst, device string) {
	s.t.Helper()
	s.must("route "+dst, s.h.RouteDel(s.route(dst, "", device)))
}

func (s *Space) route(dst, gateway, device string) *netlink.Route {
	s.t.Helper()
	_, n, err := net.ParseCIDR(dst)
	s.must("route "+dst, err)
	r := &netlink.Route{LinkIndex: s.link(device).Attrs().Index, Dst: n}
	if gateway != "" {
		r.Gw = net.ParseIP(gateway)
	} else if n.IP.To4() != nil {
		r.Scope = netlink.SCOPE_LINK
	}
	return r
}

// Index is the device's index.
func (s *Space) Index(name string) int {
	s.t.Helper()
	return s.link(name).Attrs().Index
}

// MAC is the device's address.
func (s *Space) MAC(name string) (m netdev.MAC) {
	s.t.Helper()
	copy(m[:], s.link(name).Attrs().HardwareAddr)
	return m
}

// Speak sends one datagram to addr:9, which makes both ends learn each other's MAC.
func (s *Space) Speak(addr string) {
	s.t.Helper()
	var err error
	s.Do(func() {
		var c net.Conn
		if c, err = net.Dial("udp", net.JoinHostPort(addr, "9")); err == nil {
			_, err = c.Write([]byte("hello"))
			c.Close()
		}
	})
	s.must("datagram to "+addr, err)
}

func (s *Space) link(name string) netlink.Link {
	s.t.Helper()
	l, err := s.h.LinkByName(name)
	s.must("device "+name, err)
	return l
}

func (s *Space) parse(prefix string) *netlink.Addr {
	s.t.Helper()
	a, err := netlink.ParseAddr(prefix)
	s.must("address "+prefix, err)
	return a
}

func (s *Space) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}
