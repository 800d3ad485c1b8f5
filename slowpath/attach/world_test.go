package attach

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// world is a fake node that tests furnish.
type world struct {
	t *testing.T
	*netdev.Fake
}

// newWorld has an uplink veth eth0 with addresses and default routes of both families,
// as a node of the lab has.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t, netdev.NewFake()}
	w.veth("eth0", 1500)
	w.address("eth0", "172.30.0.11/24", "fd30::11/64")
	w.route("0.0.0.0/0", "172.30.0.1", "eth0")
	w.route("::/0", "fd30::1", "eth0")
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) link(l netdev.Link) netdev.Link {
	w.t.Helper()
	if l.MTU == 0 {
		l.MTU = 1500
	}
	l.Up, l.Ethernet = true, !l.Loopback && l.Kind != "wireguard"
	got, err := w.AddLink(l)
	w.must(err)
	got.MAC = mac("02:00:00:00:00", got.Index)
	w.must(w.SetLink(got))
	return got
}

func mac(prefix string, last int) (m netdev.MAC) {
	fmt.Sscanf(fmt.Sprintf("%s:%02x", prefix, last), "%x:%x:%x:%x:%x:%x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5])
	return m
}

// peerMAC is that of the other end of the veth with the index.
func peerMAC(index int) netdev.MAC { return mac("02:00:00:00:01", index) }

func (w *world) veth(name string, mtu int) netdev.Link {
	w.t.Helper()
	l := w.link(netdev.Link{Name: name, Kind: netdev.KindVeth, MTU: mtu, Peer: 2, PeerNamespace: 7})
	w.must(w.SetPeer(name, netdev.Peer{MAC: peerMAC(l.Index), Up: true}))
	return l
}

// trunk is what the fast path makes.
func (w *world) trunk(mtu int) netdev.Link {
	w.t.Helper()
	return w.link(netdev.Link{Name: Trunk, Kind: netdev.KindVeth, MTU: mtu, Peer: 2, PeerNamespace: 8})
}

// routed is a pod of the point-to-point style.
func (w *world) routed(name string, addrs ...string) netdev.Link {
	w.t.Helper()
	l := w.veth(name, 1500)
	for _, a := range addrs {
		w.hostRoute(a, name)
	}
	w.holds(name, addrs...)
	return l
}

// bridged is a pod behind a bridge that nobody has heard of yet.
func (w *world) bridged(name, bridge string) netdev.Link {
	w.t.Helper()
	l := w.veth(name, 1500)
	l.Master = w.index(bridge)
	w.must(w.SetLink(l))
	return l
}

// heard lets the node learn that the address is behind the bridge's port.
func (w *world) heard(bridge, port, addr string) {
	w.t.Helper()
	m := peerMAC(w.index(port))
	w.must(w.SetStation(port, m))
	w.must(w.SetNeighbour(bridge, addr, m))
}

// holds sets what the device at the other end has.
func (w *world) holds(name string, addrs ...string) {
	w.t.Helper()
	p := netdev.Peer{MAC: peerMAC(w.index(name)), Up: true}
	for _, a := range addrs {
		p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
	}
	w.must(w.SetPeer(name, p))
}

func (w *world) bridge(name string, addrs ...string) netdev.Link {
	w.t.Helper()
	l := w.link(netdev.Link{Name: name, Kind: netdev.KindBridge})
	w.address(name, addrs...)
	return l
}

func (w *world) address(name string, prefixes ...string) {
	w.t.Helper()
	for _, p := range prefixes {
		w.must(w.AddAddress(name, p))
	}
}

func (w *world) hostRoute(addr, device string) {
	w.t.Helper()
	a := netip.MustParseAddr(addr)
	w.must(w.ReplaceRoute(netdev.Route{Destination: netip.PrefixFrom(a, a.BitLen()), Device: w.index(device), Scope: netdev.ScopeLink}))
}

func (w *world) route(dst, gateway, device string) {
	w.t.Helper()
	r := netdev.Route{Destination: netip.MustParsePrefix(dst), Device: w.index(device)}
	r.Gateway, _ = netip.ParseAddr(gateway)
	w.must(w.ReplaceRoute(r))
}

func (w *world) index(name string) int {
	w.t.Helper()
	links, err := w.Links()
	w.must(err)
	i := slices.IndexFunc(links, func(l netdev.Link) bool { return l.Name == name })
	if i < 0 {
		w.t.Fatalf("no device %s", name)
	}
	return links[i].Index
}

func (w *world) derive(s *ids) (model.Attachments, []model.Problem) {
	w.t.Helper()
	v, err := netdev.Read(w.Fake)
	w.must(err)
	return derive(v, s, []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")})
}

// show writes ports and routes in a form that a table test can state.
func show(a model.Attachments) string {
	var b strings.Builder
	names := make(map[uint16]string)
	for _, p := range a.Ports {
		names[p.ID] = p.Device
		fmt.Fprintf(&b, "%s %s", p.Kind, p.Device)
		for _, ip := range p.Addresses {
			fmt.Fprintf(&b, " %s", ip)
		}
		b.WriteByte('\n')
	}
	for _, r := range a.Routes {
		fmt.Fprintf(&b, "%s to %s\n", r.Prefix, names[r.Port])
	}
	return b.String()
}

func reasons(problems []model.Problem) []string {
	out := []string{}
	for _, p := range problems {
		out = append(out, p.Object+" "+p.Reason)
	}
	return out
}
