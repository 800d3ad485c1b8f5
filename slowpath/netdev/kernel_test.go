package netdev_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

var compareAddrs = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func find[T any](t *testing.T, list []T, err error, is func(T) bool) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, is)
	if i < 0 {
		t.Fatalf("not among %+v", list)
	}
	return list[i]
}

func linkNamed(t *testing.T, s netdev.Stack, name string) netdev.Link {
	t.Helper()
	links, err := s.Links()
	return find(t, links, err, func(l netdev.Link) bool { return l.Name == name })
}

// eventually waits until the condition holds; what it awaits is said when it does not.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestKernelTellsVethsThatLeadOutFromThoseThatDoNot(t *testing.T) {
	node, pod := netdevtest.New(t), netdevtest.New(t)
	node.Veth("out0", pod, "eth0")
	node.Veth("in0", node, "in1")
	node.Bridge("br0")
	node.Enslave("out0", "br0")
	s := node.Stack()

	out := linkNamed(t, s, "out0")
	want := netdev.Link{
		Index: node.Index("out0"), Name: "out0", Kind: netdev.KindVeth, MAC: node.MAC("out0"), MTU: 1500, Up: true,
		Running: true, Ethernet: true, Master: node.Index("br0"), Peer: pod.Index("eth0"),
	}
	if diff := cmp.Diff(want, out, cmpopts.IgnoreFields(netdev.Link{}, "PeerNamespace", "Queues")); diff != "" {
		t.Errorf("link (-want +got):\n%s", diff)
	}
	if !out.LeadsOut() {
		t.Errorf("%+v: want a veth that leads out of the namespace", out)
	}
	if in := linkNamed(t, s, "in0"); in.LeadsOut() || in.Peer != node.Index("in1") {
		t.Errorf("%+v: want a veth with both ends here", in)
	}
	if br := linkNamed(t, s, "br0"); br.Kind != netdev.KindBridge || br.LeadsOut() {
		t.Errorf("%+v: want a bridge", br)
	}
	if lo := linkNamed(t, s, "lo"); !lo.Loopback || lo.Ethernet || lo.Kind != "" {
		t.Errorf("%+v: want the loopback device", lo)
	}
}

func TestKernelLooksAtTheOtherEndOfAPodsVeth(t *testing.T) {
	node, pod := netdevtest.New(t), netdevtest.New(t)
	node.Veth("pod0", pod, "eth0")
	pod.Address("eth0", "10.1.0.5/24")
	pod.Address("eth0", "fd00::5/64")
	pod.Address("lo", "10.9.9.9/32")
	s := node.Stack()

	got, err := s.Peer(linkNamed(t, s, "pod0"))
	if err != nil {
		t.Fatal(err)
	}
	want := netdev.Peer{MAC: pod.MAC("eth0"), Up: true, Addresses: []netip.Addr{
		netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("fd00::5"),
	}}
	if diff := cmp.Diff(want, got, compareAddrs); diff != "" {
		t.Errorf("other end (-want +got):\n%s", diff)
	}
	if _, err := s.Peer(linkNamed(t, s, "lo")); !errors.Is(err, netdev.ErrUnsupported) {
		t.Errorf("other end of lo: %v, want ErrUnsupported", err)
	}
}

func TestKernelReadsAddressesRoutesAndNeighbours(t *testing.T) {
	node, wire := netdevtest.New(t), netdevtest.New(t)
	node.Veth("eth0", wire, "w0")
	node.Address("eth0", "192.0.2.1/24")
	node.Address("eth0", "192.0.2.9/24")
	node.Address("eth0", "2001:db8::1/64")
	wire.Address("w0", "192.0.2.254/24")
	node.Route("0.0.0.0/0", "192.0.2.254", "eth0")
	node.Route("198.51.100.7/32", "", "eth0")
	node.Route("2001:db8:1::/48", "2001:db8::fe", "eth0")
	s := node.Stack()
	eth0 := node.Index("eth0")

	addresses, err := s.Addresses()
	first := find(t, addresses, err, func(a netdev.Address) bool { return a.Prefix.String() == "192.0.2.1/24" })
	if first.Device != eth0 || first.Secondary || first.Scope != netdev.ScopeUniverse {
		t.Errorf("%+v: want the primary address of device #%d", first, eth0)
	}
	if a := find(t, addresses, err, func(a netdev.Address) bool { return a.Prefix.String() == "192.0.2.9/24" }); !a.Secondary {
		t.Errorf("%+v: want a secondary address", a)
	}

	routes, err := s.Routes()
	def := find(t, routes, err, func(r netdev.Route) bool { return r.IsDefault() })
	if def.Gateway.String() != "192.0.2.254" || def.Device != eth0 || def.Type != netdev.Unicast {
		t.Errorf("%+v: want the default route by 192.0.2.254", def)
	}
	if r := find(t, routes, err, func(r netdev.Route) bool { return r.IsHost() }); r.Destination.String() != "198.51.100.7/32" || r.Gateway.IsValid() {
		t.Errorf("%+v: want the host route", r)
	}
	if r := find(t, routes, err, func(r netdev.Route) bool { return r.Destination.String() == "2001:db8:1::/48" }); r.Gateway.String() != "2001:db8::fe" {
		t.Errorf("%+v: want the IPv6 route by a gateway", r)
	}
	for _, r := range routes {
		if r.Destination.Addr().IsMulticast() || r.Destination.Addr().IsLoopback() {
			t.Errorf("%v: routes of the local table do not belong here", r)
		}
	}

	node.Speak("192.0.2.254")
	eventually(t, "the gateway is a neighbour", func() bool {
		all, err := s.Neighbours()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(n netdev.Neighbour) bool {
			return n.Device == eth0 && n.Addr.String() == "192.0.2.254" && n.MAC == wire.MAC("w0")
		})
	})
}

func TestKernelShowsWhatABridgeLearned(t *testing.T) {
	node, pod := netdevtest.New(t), netdevtest.New(t)
	node.Bridge("br0")
	node.Address("br0", "10.1.0.1/24")
	node.Veth("pod0", pod, "eth0")
	node.Enslave("pod0", "br0")
	pod.Address("eth0", "10.1.0.5/24")
	s := node.Stack()

	want := netdev.Station{Bridge: node.Index("br0"), Port: node.Index("pod0"), MAC: pod.MAC("eth0")}
	eventually(t, "the pod's MAC is behind pod0", func() bool {
		pod.Speak("10.1.0.1")
		all, err := s.Stations()
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range all {
			if got.MAC == node.MAC("pod0") {
				t.Fatalf("%+v: the bridge's own addresses are no stations", got)
			}
		}
		return slices.Contains(all, want)
	})
}

func TestKernelReplacesAndDeletesRoutes(t *testing.T) {
	node, wire := netdevtest.New(t), netdevtest.New(t)
	node.Veth("lace0", wire, "w0")
	node.Address("lo", "192.0.2.1/32")
	node.Address("lo", "2001:db8::1/128")
	s := node.Stack()
	lace0 := node.Index("lace0")

	for _, r := range []netdev.Route{
		{
			Destination: netip.MustParsePrefix("10.96.0.0/16"), Source: netip.MustParseAddr("192.0.2.1"), Device: lace0,
			Type: netdev.Unicast, Scope: netdev.ScopeLink, Protocol: netdev.ProtocolLace, MTU: 1400,
		}, {
			Destination: netip.MustParsePrefix("fd00:10:96::/112"), Source: netip.MustParseAddr("2001:db8::1"), Device: lace0,
			Type: netdev.Unicast, Protocol: netdev.ProtocolLace, Metric: 1, MTU: 1380,
		},
	} {
		there := func() bool {
			all, err := s.Routes()
			if err != nil {
				t.Fatal(err)
			}
			return slices.Contains(all, r)
		}
		for range 2 { // the second time it is there already
			if err := s.ReplaceRoute(r); err != nil {
				t.Fatal(err)
			}
		}
		if !there() {
			all, _ := s.Routes()
			t.Errorf("%v is not among %v", r, all)
		}
		if err := s.DeleteRoute(r); err != nil {
			t.Error(err)
		}
		if there() {
			t.Errorf("%v is still there", r)
		}
		if err := s.DeleteRoute(r); !errors.Is(err, netdev.ErrNotFound) {
			t.Errorf("deleting %v twice: %v, want ErrNotFound", r, err)
		}
	}
}

func TestKernelToldOfChangesThere(t *testing.T) {
	node, pod := netdevtest.New(t), netdevtest.New(t)
	node.Veth("pod0", pod, "eth0")
	s := node.Stack()
	ctx, cancel := context.WithCancel(t.Context())
	notices, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	told := func(what string, change func()) {
		t.Helper()
		quiet(notices)
		change()
		select {
		case _, open := <-notices:
			if !open {
				t.Fatalf("%s: the watch ended", what)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: no notice within 5 s", what)
		}
	}
	told("a link comes", func() { node.Bridge("br0") })
	told("an address comes", func() { node.Address("br0", "10.1.0.1/24") })
	told("a route comes", func() { node.Route("10.1.0.5/32", "", "pod0") })
	told("an address comes in the pod", func() { pod.Address("eth0", "10.1.0.5/24") })
	told("a link goes", func() { node.Remove("br0") })

	cancel()
	eventually(t, "the watch ends with its context", func() bool {
		select {
		case _, open := <-notices:
			return !open
		default:
			return false
		}
	})
}

// quiet takes notices until none has come for a while.
func quiet(notices <-chan struct{}) {
	for {
		select {
		case <-notices:
		case <-time.After(200 * time.Millisecond):
			return
		}
	}
}

func TestKernelReadsOffloads(t *testing.T) {
	node := netdevtest.New(t)
	node.Veth("v0", node, "v1")
	s := node.Stack()
	got, err := s.Offloads("v0")
	if err != nil {
		t.Fatal(err)
	}
	if !got.TxChecksum || !got.Segmentation {
		t.Errorf("%+v: a fresh veth offloads checksums and segmentation", got)
	}
	for _, name := range []string{"absent0", "", "a-name-that-is-too-long"} {
		if _, err := s.Offloads(name); !errors.Is(err, netdev.ErrNotFound) {
			t.Errorf("offloads of %q: %v, want ErrNotFound", name, err)
		}
	}
}

func TestKernelReadsAWholeView(t *testing.T) {
	node, pod := netdevtest.New(t), netdevtest.New(t)
	node.Veth("pod0", pod, "eth0")
	pod.Address("eth0", "10.1.0.5/24")
	v, err := netdev.Read(node.Stack())
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Peers[node.Index("pod0")]; got.MAC != pod.MAC("eth0") || len(got.Addresses) != 1 {
		t.Errorf("behind pod0: %+v, want eth0 of the pod", got)
	}
}

func TestRefusalsAreTheSameFromKernelAndFake(t *testing.T) {
	node, wire := netdevtest.New(t), netdevtest.New(t)
	node.Veth("up0", wire, "w0")
	node.Address("up0", "192.0.2.1/24")
	node.Bridge("down0")
	kernel := node.Stack()

	fake := netdev.NewFake()
	for _, l := range []netdev.Link{{Name: "up0", MTU: 1500, Up: true}, {Name: "down0", MTU: 1500}} {
		if _, err := fake.AddLink(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := fake.AddAddress("up0", "192.0.2.1/24"); err != nil {
		t.Fatal(err)
	}
	down(t, kernel, node)

	cases := []struct {
		name string
		r    func(netdev.Stack) netdev.Route
		want error
	}{
		{"a device that does not exist", route("10.0.0.0/8", "", "", 4711), netdev.ErrNotFound},
		{"a device that is down", routeBy("10.0.0.0/8", "", "", "down0"), netdev.ErrDown},
		{"a source that the node does not have", routeBy("10.0.0.0/8", "", "203.0.113.5", "up0"), netdev.ErrInvalid},
		{"a gateway that is not on the link", routeBy("10.0.0.0/8", "203.0.113.5", "", "up0"), netdev.ErrInvalid},
		{"a destination with host bits", routeBy("10.0.0.1/8", "", "", "up0"), netdev.ErrInvalid},
		{"a gateway of the other family", routeBy("10.0.0.0/8", "2001:db8::1", "", "up0"), netdev.ErrInvalid},
		{"no device", route("10.0.0.0/8", "", "", 0), netdev.ErrInvalid},
		{"a gateway on the link", routeBy("10.0.0.0/8", "192.0.2.2", "192.0.2.1", "up0"), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for name, s := range map[string]netdev.Stack{"kernel": kernel, "fake": fake} {
				if err := s.ReplaceRoute(c.r(s)); !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", name, err, c.want)
				}
			}
		})
	}
}

// down takes the bridge down, which netdevtest made up.
func down(t *testing.T, s netdev.Stack, node *netdevtest.Space) {
	t.Helper()
	node.Down("down0")
	if linkNamed(t, s, "down0").Up {
		t.Fatal("down0 is still up")
	}
}

func route(dst, gateway, source string, device int) func(netdev.Stack) netdev.Route {
	return func(netdev.Stack) netdev.Route {
		r := netdev.Route{Destination: netip.MustParsePrefix(dst), Device: device}
		r.Gateway, _ = netip.ParseAddr(gateway)
		r.Source, _ = netip.ParseAddr(source)
		return r
	}
}

func routeBy(dst, gateway, source, device string) func(netdev.Stack) netdev.Route {
	return func(s netdev.Stack) netdev.Route {
		links, _ := s.Links()
		i := slices.IndexFunc(links, func(l netdev.Link) bool { return l.Name == device })
		return route(dst, gateway, source, links[i].Index)(s)
	}
}
