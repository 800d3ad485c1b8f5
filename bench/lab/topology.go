package lab

import (
	"fmt"
	"net/netip"
)

// PodStyle is how a node connects its pods.
type PodStyle string

const (
	PTP    PodStyle = "ptp"    // a host route for each pod, as the ptp plugin does it
	Bridge PodStyle = "bridge" // all pods of a node on one bridge that carries the gateway address
)

// Topology says what to build. The zero value is good: rp_filter 0, ptp pods, one worker.
type Topology struct {
	RPFilter  int      // net.ipv4.conf.*.rp_filter of the nodes: 0, 1 (strict) or 2 (loose)
	PodStyle  PodStyle // empty: PTP
	Workers   int      // workers of each fastpath; 0: 1
	FlowSlots int      // slots of each flow table, two per flow; 0: 131,072
	Lane      string   // of the agents' settings: "on" or "off"; empty: the product's default
	Delivery  string   // of the agents' settings: "stack" or "direct"; empty: direct
	Third     bool     // a third node, n3, without pods; whoever asks for it declares its Node
	Forgetful bool     // unconfirmed and closed flows are forgotten after two seconds
	Manifests string   // folder whose YAML is copied into the lab's; empty: the embedded one
	Source    *Source  // what the agents read; nil: the lab's folder
	Keep      bool     // leave the lab's folder behind on Close
}

func (t *Topology) complete() error {
	if t.PodStyle == "" {
		t.PodStyle = PTP
	}
	t.Workers = max(t.Workers, 1)
	if t.FlowSlots == 0 {
		t.FlowSlots = 1 << 17
	}
	switch {
	case t.RPFilter < 0 || t.RPFilter > 2:
		return fmt.Errorf("topology: rp_filter %d: say 0, 1 or 2", t.RPFilter)
	case t.PodStyle != PTP && t.PodStyle != Bridge:
		return fmt.Errorf("topology: pod style %q: say %q or %q", t.PodStyle, PTP, Bridge)
	case t.Lane != "" && t.Lane != "on" && t.Lane != "off":
		return fmt.Errorf("topology: lane %q: say on or off", t.Lane)
	case t.Delivery != "" && t.Delivery != "stack" && t.Delivery != "direct":
		return fmt.Errorf("topology: delivery %q: say stack or direct", t.Delivery)
	case t.Workers > 8:
		return fmt.Errorf("topology: %d workers: say 1 to 8", t.Workers)
	}
	return nil
}

// ServiceRanges are the prefixes of ClusterIPs in the lab.
var ServiceRanges = []netip.Prefix{
	netip.MustParsePrefix("10.96.0.0/16"),
	netip.MustParsePrefix("fd00:10:96::/112"),
}

// ExternalRanges are the prefixes from which Services of the lab take external addresses and
// those of balancers. The outside client reaches them through n1.
var ExternalRanges = []netip.Prefix{
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8:113::/112"),
}

const (
	wireName    = "wire"
	OutsideName = "outside"
	outsideHost = 100 // last part of its addresses
	gatewayHost = 1   // last part of a node's address towards its pods
)

type nodeSpec struct {
	name  string
	index int // third part of pod addresses; 10 + index is the last part of the node's own
	pods  []string
}

// nodeSpecs are the nodes of every lab. Manifests name these nodes and addresses.
var nodeSpecs = []nodeSpec{
	{name: "n1", index: 1, pods: []string{"web-1", "web-2", "shopper"}},
	{name: "n2", index: 2, pods: []string{"web-3", "visitor"}},
}

var thirdNode = nodeSpec{name: "n3", index: 3}

// cast are the nodes of a lab, n1 first.
func (t *Topology) cast() []*nodeSpec {
	out := []*nodeSpec{&nodeSpecs[0], &nodeSpecs[1]}
	if t.Third {
		out = append(out, &thirdNode)
	}
	return out
}

// addresses of one host, one of each family, with the length of its on-link prefix.
type addresses struct{ v4, v6 netip.Prefix }

func parse(v4, v6 string) addresses {
	return addresses{netip.MustParsePrefix(v4), netip.MustParsePrefix(v6)}
}

func wireAddresses(host int) addresses {
	return parse(fmt.Sprintf("172.30.0.%d/24", host), fmt.Sprintf("fd30::%d/64", host))
}

func (n *nodeSpec) wire() addresses    { return wireAddresses(10 + n.index) }
func (n *nodeSpec) gateway() addresses { return n.pod(gatewayHost) }

// pod gives the addresses of a host in the node's pod prefix.
func (n *nodeSpec) pod(host int) addresses {
	return parse(
		fmt.Sprintf("10.244.%d.%d/24", n.index, host),
		fmt.Sprintf("fd00:10:244:%d::%d/64", n.index, host))
}

// podHost is the last part of the addresses of the i-th pod of a node.
func podHost(i int) int { return 11 + i }

// single narrows the prefixes to the host alone.
func (a addresses) single() addresses {
	return addresses{
		netip.PrefixFrom(a.v4.Addr(), 32),
		netip.PrefixFrom(a.v6.Addr(), 128),
	}
}

// masked gives the prefixes that the addresses are in.
func (a addresses) masked() addresses { return addresses{a.v4.Masked(), a.v6.Masked()} }

func (a addresses) both() []netip.Prefix { return []netip.Prefix{a.v4, a.v6} }
