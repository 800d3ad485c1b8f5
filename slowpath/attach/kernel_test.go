package attach

import (
	"net/netip"
	"slices"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// node is a namespace with an uplink to a wire, like a node of a cluster.
type node struct {
	*netdevtest.Space
	wire *netdevtest.Space
}

func newNode(t *testing.T) node {
	t.Helper()
	n := node{netdevtest.New(t), netdevtest.New(t)}
	n.Veth("eth0", n.wire, "w0")
	n.Address("eth0", "172.30.0.11/24")
	n.Address("eth0", "fd30::11/64")
	n.Route("0.0.0.0/0", "172.30.0.1", "eth0")
	return n
}

// trunk makes lace0 as the fast path does: its other end in a namespace of its own.
func (n node) trunk(t *testing.T) *netdevtest.Space {
	t.Helper()
	private := netdevtest.New(t)
	n.Veth(Trunk, private, "lace1")
	return private
}

// routed attaches a pod as the ptp plugin does.
func (n node) routed(t *testing.T, veth, addr4, addr6 string) *netdevtest.Space {
	t.Helper()
	pod := netdevtest.New(t)
	n.Veth(veth, pod, "eth0")
	n.Address(veth, "10.244.1.1/32")
	pod.Address("eth0", addr4+"/32")
	pod.Address("eth0", addr6+"/128")
	n.Route(addr4+"/32", "", veth)
	n.Route(addr6+"/128", "", veth)
	return pod
}

// bridged attaches a pod as the bridge plugin does.
func (n node) bridged(t *testing.T, veth, addr4, addr6 string) *netdevtest.Space {
	t.Helper()
	pod := netdevtest.New(t)
	n.Veth(veth, pod, "eth0")
	n.Enslave(veth, "cni0")
	pod.Address("eth0", addr4+"/24")
	pod.Address("eth0", addr6+"/64")
	return pod
}

func behind(device string, want ...string) func(model.Attachments, []model.Problem) bool {
	return func(a model.Attachments, _ []model.Problem) bool {
		got := []string{}
		if i := indexOf(a, device); i >= 0 {
			for _, ip := range a.Ports[i].Addresses {
				got = append(got, ip.String())
			}
		}
		return slices.Equal(got, want)
	}
}

func indexOf(a model.Attachments, device string) int {
	return slices.IndexFunc(a.Ports, func(p model.Port) bool { return p.Device == device })
}

func find(t *testing.T, r *record, device string) model.Port {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	i := indexOf(r.last, device)
	if i < 0 {
		t.Fatalf("no port %s among %+v", device, r.last.Ports)
	}
	return r.last.Ports[i]
}

func TestKernelPodsOfThePointToPointStyle(t *testing.T) {
	n := newNode(t)
	n.trunk(t)
	r := run(t, n.Stack())
	r.await(t, "the uplink is a port", port("eth0"))

	pod := n.routed(t, "vethA", "10.244.1.5", "fd00:10:244:1::5")
	r.await(t, "both addresses are behind vethA", behind("vethA", "10.244.1.5", "fd00:10:244:1::5"))
	got := find(t, r, "vethA")
	if got.Kind != model.PortPod || got.HostMAC != n.MAC("vethA") || got.PeerMAC != pod.MAC("eth0") || got.MTU != 1500 {
		t.Errorf("%+v: want a pod's port from %s to %s with MTU 1500", got, n.MAC("vethA"), pod.MAC("eth0"))
	}
	if host := find(t, r, Trunk); !slices.Contains(host.Addresses, netip.MustParseAddr("10.244.1.1")) {
		t.Errorf("%+v: the pods' gateway address is the node's", host)
	}

	n.Remove("vethA")
	r.await(t, "the pod is gone", noPort("vethA"))
}

func TestKernelPodsBehindABridge(t *testing.T) {
	n := newNode(t)
	n.trunk(t)
	n.Bridge("cni0")
	n.Address("cni0", "10.244.1.1/24")
	n.Address("cni0", "fd00:10:244:1::1/64")
	r := run(t, n.Stack())

	pod := n.bridged(t, "vethA", "10.244.1.5", "fd00:10:244:1::5")
	r.await(t, "a pod that has not spoken is found", behind("vethA", "10.244.1.5", "fd00:10:244:1::5"))
	got := find(t, r, "vethA")
	if got.HostMAC != n.MAC("cni0") || got.PeerMAC != pod.MAC("eth0") {
		t.Errorf("%+v: want the bridge's MAC %s and the pod's %s", got, n.MAC("cni0"), pod.MAC("eth0"))
	}
	if up := find(t, r, "eth0"); up.Kind != model.PortUplink {
		t.Errorf("%+v: want the uplink", up)
	}

	pod.RemoveAddress("eth0", "10.244.1.5/24")
	pod.Address("eth0", "10.244.1.6/24")
	pod.Speak("10.244.1.1")
	r.await(t, "the pod's new address is noticed", func(a model.Attachments, _ []model.Problem) bool {
		i := indexOf(a, "vethA")
		return i >= 0 && slices.Contains(a.Ports[i].Addresses, netip.MustParseAddr("10.244.1.6"))
	})

	n.Remove("vethA")
	r.await(t, "the pod is gone", noPort("vethA"))
}

func TestKernelAnAddressUsedAgainIsTheNewPods(t *testing.T) {
	for _, style := range []string{"point-to-point", "bridge"} {
		t.Run(style, func(t *testing.T) {
			n := newNode(t)
			attach := n.routed
			if style == "bridge" {
				n.Bridge("cni0")
				n.Address("cni0", "10.244.1.1/24")
				n.Address("cni0", "fd00:10:244:1::1/64")
				attach = n.bridged
			}
			r := run(t, n.Stack())
			attach(t, "vethA", "10.244.1.5", "fd00:10:244:1::5")
			r.await(t, "the old pod has the address", behind("vethA", "10.244.1.5", "fd00:10:244:1::5"))
			before := find(t, r, "vethA").ID

			// The old pod's device was never removed: its deletion got lost.
			attach(t, "vethB", "10.244.1.5", "fd00:10:244:1::5")
			r.await(t, "the new pod has the address", behind("vethB", "10.244.1.5", "fd00:10:244:1::5"))
			r.await(t, "the old pod has not", behind("vethA"))
			if after := find(t, r, "vethB").ID; after == before {
				t.Errorf("the new pod's port has the old one's id %d", before)
			}
			n.Remove("vethA")
			r.await(t, "the new pod stays", behind("vethB", "10.244.1.5", "fd00:10:244:1::5"))
		})
	}
}

func TestKernelServiceRoutesAreRepaired(t *testing.T) {
	n := newNode(t)
	s := n.Stack()
	run(t, s)
	want := []string{"10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11"}

	n.trunk(t)
	awaitRoutes(t, "the trunk was made", s, want...)

	n.RemoveRoute("10.96.0.0/16", Trunk)
	n.RemoveRoute("fd00:10:96::/112", Trunk)
	awaitRoutes(t, "somebody removed the routes", s, want...)

	n.Remove(Trunk)
	awaitRoutes(t, "the trunk is gone", s)
	n.trunk(t)
	awaitRoutes(t, "the trunk was made anew", s, want...)

	n.Down(Trunk)
	n.Up(Trunk)
	awaitRoutes(t, "the trunk was down for a moment", s, want...)

	if _, err := RemoveRoutes(s); err != nil {
		t.Error(err)
	}
	// The follower puts them back: cleaning up is for when it has ended.
	awaitRoutes(t, "the routes were cleaned up under a running follower", s, want...)
}

func TestKernelUplinkByAVethWithoutDefaultRoute(t *testing.T) {
	n := netdevtest.New(t)
	wire := netdevtest.New(t)
	n.Veth("eth0", wire, "w0")
	n.Address("eth0", "172.30.0.11/24")
	n.Route("10.244.2.0/24", "172.30.0.12", "eth0")
	r := run(t, n.Stack())
	r.await(t, "the uplink is a port", port("eth0"))
	if got := find(t, r, "eth0"); got.Kind != model.PortUplink {
		t.Errorf("%+v: want an uplink", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got, want := show(r.last), "uplink eth0\n10.244.2.0/24 to eth0\n172.30.0.0/24 to eth0\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
