package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"lace-cni.io/lace/control/model"
)

// NodePorts says at which of a node's own addresses node ports are answered, in the words of
// kube-proxy's nodePortAddresses. The zero value means the primary ones.
type NodePorts struct {
	primary, all bool
	prefixes     []netip.Prefix
}

// ParseNodePorts reads keywords and prefixes separated by commas:
//
//	primary   the internal addresses of the Node object; without one, those by which other
//	          nodes know this one
//	all       every address of the node but loopback
//	PREFIX    every address in it; a family of which there is no prefix has all of its own
//
// Empty means primary.
func ParseNodePorts(s string) (n NodePorts, err error) {
	for word := range strings.SplitSeq(s, ",") {
		switch word = strings.TrimSpace(word); word {
		case "":
		case "primary":
			n.primary = true
		case "all":
			n.all = true
		case "localhost":
			return NodePorts{}, errors.New("localhost: node ports are not answered at loopback addresses; leave it out")
		default:
			p, err := netip.ParsePrefix(word)
			if err != nil || p.Addr().Is4In6() {
				return NodePorts{}, fmt.Errorf("%q is no prefix such as 172.30.0.0/24, and neither primary nor all", word)
			}
			n.prefixes = append(n.prefixes, p.Masked())
		}
	}
	return n, nil
}

// Restricted says whether some of the node's addresses were chosen, by word or by prefix.
func (n NodePorts) Restricted() bool { return !n.all && (n.primary || len(n.prefixes) > 0) }

// String is what ParseNodePorts reads.
func (n NodePorts) String() string {
	var words []string
	if n.primary || !n.all && len(n.prefixes) == 0 {
		words = append(words, "primary")
	}
	if n.all {
		words = append(words, "all")
	}
	for _, p := range n.prefixes {
		words = append(words, p.String())
	}
	return strings.Join(words, ",")
}

// Of picks from the addresses that the node really has, sorted. A node answers for its own
// addresses alone; without a host port it has none yet.
func (n NodePorts) Of(node model.Node, a *model.Attachments) []netip.Addr {
	var out []netip.Addr
	for i := range a.Ports {
		if a.Ports[i].Kind != model.PortHost {
			continue
		}
		for _, own := range a.Ports[i].Addresses {
			if n.matches(own, node, a) {
				out = append(out, own)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func (n NodePorts) matches(own netip.Addr, node model.Node, a *model.Attachments) bool {
	if n.all {
		return true
	}
	if (n.primary || len(n.prefixes) == 0) && slices.Contains(primary(node, a), own) {
		return true
	}
	named := false
	for _, p := range n.prefixes {
		named = named || p.Addr().Is4() == own.Is4()
		if p.Contains(own) {
			return true
		}
	}
	return len(n.prefixes) > 0 && !n.primary && !named
}

func primary(node model.Node, a *model.Attachments) []netip.Addr {
	if len(node.Addresses) > 0 {
		return node.Addresses
	}
	return []netip.Addr{a.Node4, a.Node6}
}
