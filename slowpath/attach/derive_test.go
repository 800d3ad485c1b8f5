package attach

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// bareRoutes are those of newWorld.
const bareRoutes = `0.0.0.0/0 to eth0
172.30.0.0/24 to eth0
::/0 to eth0
fd30::/64 to eth0
`

func TestPortsFollowFromTheNetwork(t *testing.T) {
	cases := []struct {
		name     string
		furnish  func(w *world)
		want     string
		problems []string
	}{
		{
			"a veth with the node's address and the default route is the uplink",
			func(*world) {},
			"uplink eth0\n" + bareRoutes, nil,
		},
		{
			"the trunk is the node itself, with every address of it that others can use",
			func(w *world) {
				w.trunk(1500)
				w.address("lo", "127.0.0.1/8", "::1/128", "192.0.2.50/32")
				w.address("eth0", "fe80::11/64")
			},
			"host lace0 172.30.0.11 192.0.2.50 fd30::11\nuplink eth0\n" + bareRoutes, nil,
		},
		{
			"a veth to which host routes lead is a pod, whatever address of the node it bears",
			func(w *world) {
				w.routed("vethA", "10.244.1.5", "fd00:10:244:1::5")
				w.address("vethA", "10.244.1.1/32")
			},
			"uplink eth0\npod vethA 10.244.1.5 fd00:10:244:1::5\n" + bareRoutes, nil,
		},
		{
			"a veth to which nothing leads is no port",
			func(w *world) { w.veth("vethA", 1500) },
			"uplink eth0\n" + bareRoutes, nil,
		},
		{
			"a veth with both ends on the node is no pod",
			func(w *world) {
				w.link(netdev.Link{Name: "in0", Kind: netdev.KindVeth})
				w.hostRoute("10.244.1.5", "in0")
			},
			"uplink eth0\n" + bareRoutes, nil, // and no trunk yet to leave the route to
		},
		{
			"a pod behind a bridge is found by the node's neighbours and the bridge's stations",
			func(w *world) {
				w.bridge("cni0", "10.244.1.1/24")
				w.bridged("vethA", "cni0")
				w.heard("cni0", "vethA", "10.244.1.5")
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, nil,
		},
		{
			"a pod behind a bridge stays when the bridge's station has aged",
			func(w *world) {
				w.bridge("cni0", "10.244.1.1/24")
				w.bridged("vethA", "cni0")
				w.heard("cni0", "vethA", "10.244.1.5")
				w.must(w.ForgetStations("cni0"))
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, nil,
		},
		{
			"a pod behind a bridge that has never sent anything is found by its own device",
			func(w *world) {
				w.bridge("cni0", "10.244.1.1/24", "fd00:10:244:1::1/64")
				w.bridged("vethA", "cni0")
				w.holds("vethA", "10.244.1.5", "fd00:10:244:1::5", "192.168.7.7")
			},
			"uplink eth0\npod vethA 10.244.1.5 fd00:10:244:1::5\n" + bareRoutes, nil,
		},
		{
			"a host route decides over what a bridge's neighbours say",
			func(w *world) {
				w.routed("vethA", "10.244.1.5")
				w.bridge("cni0", "10.244.1.1/24")
				w.bridged("vethB", "cni0")
				w.heard("cni0", "vethB", "10.244.1.5")
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, []string{"vethB AddressTaken"},
		},
		{
			"the device that has the address decides over a neighbour that claims it",
			func(w *world) {
				w.bridge("cni0", "10.244.1.1/24")
				w.bridged("vethA", "cni0")
				w.holds("vethA", "10.244.1.5")
				w.bridged("vethB", "cni0")
				w.heard("cni0", "vethB", "10.244.1.5")
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, []string{"vethB AddressTaken"},
		},
		{
			"an address that two host routes lead to is the newer pod's",
			func(w *world) {
				w.routed("vethA", "10.244.1.5", "10.244.1.6")
				w.veth("vethB", 1500)
				w.must(w.AppendRoute(netdev.Route{Destination: netip.MustParsePrefix("10.244.1.5/32"), Device: w.index("vethB")}))
			},
			"uplink eth0\npod vethA 10.244.1.6\npod vethB 10.244.1.5\n" + bareRoutes, []string{"vethA AddressTaken"},
		},
		{
			"the node's own IPv6 address on a pod's device is no claim of the pod",
			func(w *world) {
				w.routed("vethA", "10.244.1.5")
				w.address("vethA", "fd00:10:244:1::1/128")
				w.must(w.AppendRoute(netdev.Route{Destination: netip.MustParsePrefix("fd00:10:244:1::1/128"), Device: w.index("vethA"), Protocol: netdev.ProtocolKernel}))
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, nil,
		},
		{
			"a pod under an address of the node is not believed",
			func(w *world) {
				w.bridge("cni0", "10.244.1.1/24")
				w.bridged("vethA", "cni0")
				w.heard("cni0", "vethA", "10.244.1.1")
			},
			"uplink eth0\n" + bareRoutes, []string{"vethA AddressOfNode"},
		},
		{
			"a pod that is a router stays a pod, and its prefix goes to it",
			func(w *world) {
				w.routed("vethA", "10.244.1.5")
				w.route("192.168.9.0/24", "10.244.1.5", "vethA")
			},
			"uplink eth0\npod vethA 10.244.1.5\n0.0.0.0/0 to eth0\n172.30.0.0/24 to eth0\n192.168.9.0/24 to vethA\n::/0 to eth0\nfd30::/64 to eth0\n", nil,
		},
		{
			"hardware with a route to other nodes' pods is an uplink too",
			func(w *world) {
				w.link(netdev.Link{Name: "eth1"})
				w.address("eth1", "10.9.0.1/24")
				w.route("10.244.2.0/24", "10.9.0.2", "eth1")
			},
			"uplink eth0\nuplink eth1\n0.0.0.0/0 to eth0\n10.9.0.0/24 to eth1\n10.244.2.0/24 to eth1\n172.30.0.0/24 to eth0\n::/0 to eth0\nfd30::/64 to eth0\n", nil,
		},
		{
			"hardware without a route is no port, nor is a device that is down, nor a dummy",
			func(w *world) {
				w.link(netdev.Link{Name: "eth1"})
				l := w.link(netdev.Link{Name: "eth2"})
				w.address("eth2", "10.9.0.1/24")
				l.Up = false
				w.must(w.SetLink(l))
				w.link(netdev.Link{Name: "dummy0", Kind: "dummy"})
				w.address("dummy0", "169.254.20.10/32")
			},
			"uplink eth0\n" + bareRoutes, nil,
		},
		{
			"a bridge over a wire is the uplink, its members are not, and its pods are pods",
			func(w *world) {
				w.bridge("br0", "10.9.0.1/24")
				eth1 := w.link(netdev.Link{Name: "eth1"})
				eth1.Master = w.index("br0")
				w.must(w.SetLink(eth1))
				w.bridged("vethA", "br0")
				w.heard("br0", "vethA", "10.9.0.5")
			},
			"uplink eth0\nuplink br0\npod vethA 10.9.0.5\n0.0.0.0/0 to eth0\n10.9.0.0/24 to br0\n172.30.0.0/24 to eth0\n::/0 to eth0\nfd30::/64 to eth0\n", nil,
		},
		{
			"a device without Ethernet is no port: said aloud, and left to the kernel",
			func(w *world) {
				w.trunk(1500)
				w.link(netdev.Link{Name: "wg0", Kind: "wireguard"})
				w.address("wg0", "10.9.0.1/24")
			},
			"host lace0 10.9.0.1 172.30.0.11 fd30::11\nuplink eth0\n0.0.0.0/0 to eth0\n10.9.0.0/24 to lace0\n172.30.0.0/24 to eth0\n::/0 to eth0\nfd30::/64 to eth0\n",
			[]string{"wg0 NotEthernet"},
		},
		{
			"the prefix of a pods' bridge goes to the node, whose kernel asks who has the address",
			func(w *world) {
				w.trunk(1500)
				w.bridge("cni0", "10.244.1.1/24")
			},
			"host lace0 10.244.1.1 172.30.0.11 fd30::11\nuplink eth0\n0.0.0.0/0 to eth0\n10.244.1.0/24 to lace0\n172.30.0.0/24 to eth0\n::/0 to eth0\nfd30::/64 to eth0\n", nil,
		},
		{
			"service ranges are not among the routes",
			func(w *world) {
				w.trunk(1500)
				w.route("10.96.0.0/16", "", Trunk)
			},
			"host lace0 172.30.0.11 fd30::11\nuplink eth0\n" + bareRoutes, nil,
		},
		{
			"a blackhole goes to the node, whose kernel refuses",
			func(w *world) {
				w.trunk(1500)
				w.must(w.ReplaceRoute(netdev.Route{Destination: netip.MustParsePrefix("10.244.0.0/16"), Type: netdev.Blackhole}))
			},
			"host lace0 172.30.0.11 fd30::11\nuplink eth0\n0.0.0.0/0 to eth0\n10.244.0.0/16 to lace0\n172.30.0.0/24 to eth0\n::/0 to eth0\nfd30::/64 to eth0\n", nil,
		},
		{
			"of two routes with one prefix the better metric counts, of two hops the first that is a port",
			func(w *world) {
				w.link(netdev.Link{Name: "eth1"})
				w.address("eth1", "10.9.0.1/24")
				gw, dst := netip.MustParseAddr("10.9.0.2"), netip.MustParsePrefix("0.0.0.0/0")
				w.must(w.ReplaceRoute(netdev.Route{Destination: dst, Gateway: gw, Device: w.index("eth1"), Metric: 50}))
				w.link(netdev.Link{Name: "wg0", Kind: "wireguard"})
				to := netip.MustParsePrefix("10.7.0.0/16")
				w.must(w.ReplaceRoute(netdev.Route{Destination: to, Device: w.index("wg0")}))
				w.must(w.AppendRoute(netdev.Route{Destination: to, Device: w.index("eth1")}))
			},
			"uplink eth0\nuplink eth1\n0.0.0.0/0 to eth0\n10.7.0.0/16 to eth1\n10.9.0.0/24 to eth1\n172.30.0.0/24 to eth0\n::/0 to eth0\nfd30::/64 to eth0\n",
			[]string{"wg0 NotEthernet"},
		},
		{
			"a port whose packets do not fit through the trunk is a problem",
			func(w *world) {
				w.trunk(1400)
				w.routed("vethA", "10.244.1.5")
			},
			"host lace0 172.30.0.11 fd30::11\nuplink eth0\npod vethA 10.244.1.5\n" + bareRoutes,
			[]string{"eth0 MTUExceedsTrunk", "vethA MTUExceedsTrunk"},
		},
		{
			"a pod whose MAC nobody knows is a problem until it is learned",
			func(w *world) {
				w.routed("vethA", "10.244.1.5")
				w.must(w.SetPeer("vethA", netdev.Peer{}))
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, []string{"vethA NoPeerMAC"},
		},
		{
			"a second MAC behind one veth is not delivered to, and that is said",
			func(w *world) {
				w.bridge("cni0", "10.244.1.1/24")
				w.bridged("vethA", "cni0")
				w.heard("cni0", "vethA", "10.244.1.5")
				w.must(w.SetStation("vethA", netdev.MAC{2, 9}))
				w.must(w.SetNeighbour("cni0", "10.244.1.6", netdev.MAC{2, 9}))
			},
			"uplink eth0\npod vethA 10.244.1.5\n" + bareRoutes, []string{"vethA SecondMAC"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.furnish(w)
			got, problems := w.derive(newIDs(nil))
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Errorf("ports and routes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{}, c.problems...), reasons(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMACAddressesOfAPodsPort(t *testing.T) {
	w := newWorld(t)
	a := w.routed("vethA", "10.244.1.5")
	br := w.bridge("cni0", "10.244.2.1/24")
	b := w.bridged("vethB", "cni0")
	w.heard("cni0", "vethB", "10.244.2.5")
	c := w.routed("vethC", "10.244.1.7")
	w.must(w.SetNeighbour("vethC", "10.244.1.7", netdev.MAC{2, 7}))

	got, problems := w.derive(newIDs(nil))
	if len(problems) != 0 {
		t.Errorf("problems %v, want none", problems)
	}
	want := map[string][2]netdev.MAC{
		"vethA": {a.MAC, peerMAC(a.Index)},  // gateway: the veth itself; pod: its own device
		"vethB": {br.MAC, peerMAC(b.Index)}, // gateway: the bridge
		"vethC": {c.MAC, {2, 7}},            // pod: what the node's neighbours say
	}
	for _, p := range got.Ports {
		if p.Kind != model.PortPod {
			continue
		}
		if macs := [2]netdev.MAC{p.HostMAC, p.PeerMAC}; macs != want[p.Device] {
			t.Errorf("%s: host and peer MAC %v, want %v", p.Device, macs, want[p.Device])
		}
		delete(want, p.Device)
	}
	if len(want) != 0 {
		t.Errorf("no port for %v", want)
	}
}

// TestUplinksThatAreNear: a veth is, hardware is not.
func TestUplinksThatAreNear(t *testing.T) {
	w := newWorld(t)
	w.routed("vethA", "10.244.1.5")
	w.link(netdev.Link{Name: "eth1"})
	w.address("eth1", "10.9.0.1/24")
	w.route("10.244.2.0/24", "10.9.0.2", "eth1")
	near := map[string]bool{}
	got, _ := w.derive(newIDs(nil))
	for _, p := range got.Ports {
		near[p.Device] = p.Near
	}
	if want := map[string]bool{"eth0": true, "eth1": false, "vethA": false}; !maps.Equal(near, want) {
		t.Errorf("near are %v, want %v", near, want)
	}
}

func TestNodeAddress(t *testing.T) {
	cases := []struct {
		name    string
		furnish func(w *world)
		want4   string
		want6   string
	}{
		{"the address of the default route's device", func(*world) {}, "172.30.0.11", "fd30::11"},
		{
			"the default route's preferred source, where it names one",
			func(w *world) {
				w.address("lo", "192.0.2.50/32")
				w.must(w.ReplaceRoute(netdev.Route{
					Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("172.30.0.1"),
					Device: w.index("eth0"), Source: netip.MustParseAddr("192.0.2.50"),
				}))
			},
			"192.0.2.50", "fd30::11",
		},
		{
			"the first uplink's, where there is no default route",
			func(w *world) {
				for _, dst := range []string{"0.0.0.0/0", "::/0"} {
					w.must(w.DeleteRoute(netdev.Route{Destination: netip.MustParsePrefix(dst), Device: w.index("eth0")}))
				}
			},
			"172.30.0.11", "fd30::11",
		},
		{
			"none of a family that the node does not have",
			func(w *world) { w.must(w.DeleteAddress("eth0", "fd30::11/64")) },
			"172.30.0.11", "invalid IP",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.furnish(w)
			got, _ := w.derive(newIDs(nil))
			if got.Node4.String() != c.want4 || got.Node6.String() != c.want6 {
				t.Errorf("got %s and %s, want %s and %s", got.Node4, got.Node6, c.want4, c.want6)
			}
		})
	}
}

// TestAddressesThatKubeProxyLeaves are those of Services, not of the node.
func TestAddressesThatKubeProxyLeaves(t *testing.T) {
	w := newWorld(t)
	w.trunk(1500)
	w.link(netdev.Link{Name: "kube-ipvs0", Kind: "dummy"})
	w.address("kube-ipvs0", "10.96.0.10/32")
	w.link(netdev.Link{Name: "nodelocaldns", Kind: "dummy"})
	w.address("nodelocaldns", "169.254.20.10/32")
	got, _ := w.derive(newIDs(nil))
	if want := "host lace0 169.254.20.10 172.30.0.11 fd30::11\n"; !strings.Contains(show(got), want) {
		t.Errorf("got\n%s\nwant the line %s", show(got), want)
	}
}
