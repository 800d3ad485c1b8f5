package resolve

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/model"
)

// TestPathless: an endpoint of this node has no way there when nothing of the node leads to it;
// of every other endpoint that is not said.
func TestPathless(t *testing.T) {
	addr := netip.MustParseAddr
	ports := []model.Port{
		{Kind: model.PortHost, Addresses: []netip.Addr{addr("172.30.0.11"), addr("192.168.7.1")}},
		{Kind: model.PortUplink},
		{Kind: model.PortPod, Addresses: []netip.Addr{addr("10.244.1.2"), addr("fd00:10:244:1::2")}},
	}
	routes := []model.Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 2}, {Prefix: netip.MustParsePrefix("10.244.1.0/24"), Port: 1},
		{Prefix: netip.MustParsePrefix("10.244.1.9/32"), Port: 1},
	}
	for _, c := range []struct {
		sentence, node, addr string
		ports                []model.Port
		want                 bool
	}{
		{"a pod's port has the address", "n1", "10.244.1.2", ports, false},
		{"of the other family, too", "n1", "fd00:10:244:1::2", ports, false},
		{"no port has it, and only prefixes lead there", "n1", "10.244.1.3", ports, true},
		{"nor of the other family", "n1", "fd00:10:244:1::3", ports, true},
		{"the host network has any address of the node", "n1", "192.168.7.1", ports, false},
		{"so has the address by which others know the node", "n1", "172.30.0.12", ports, false},
		{"a route of its own leads to it, by a device that is no port", "n1", "10.244.1.9", ports, false},
		{"it is on another node", "n2", "10.244.1.3", ports, false},
		{"nobody knows on which node it is", "", "10.244.1.3", ports, false},
		{"the node's own addresses are not known yet", "n1", "10.244.1.3", ports[1:], false},
	} {
		a := &model.Attachments{Ports: c.ports, Routes: routes, Node4: addr("172.30.0.12")}
		if got := Pathless("n1", a)(&model.Endpoint{Addr: addr(c.addr), Node: c.node}); got != c.want {
			t.Errorf("%s: %v, want %v", c.sentence, got, c.want)
		}
		if Pathless("", a)(&model.Endpoint{Addr: addr(c.addr), Node: c.node}) {
			t.Errorf("%s: an endpoint of a node without a name", c.sentence)
		}
	}
}
