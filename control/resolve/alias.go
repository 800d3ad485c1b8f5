package resolve

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
)

// aliases are where the node itself reaches those of a Service's addresses that are its own:
// node ports, and a balancer's address that the node holds. An external address has none:
// whoever may write a Service may write any address there, that of the node's own listeners
// among them, and what a node sends to itself is not taken from it by that.
func aliases(of []origin, node model.Node) (out []origin) {
	for _, o := range of {
		if o.kind != model.NodePort && o.kind != model.LoadBalancer {
			continue
		}
		if alias, own := node.Aliases[o.addr]; own {
			out = append(out, origin{kind: o.kind, addr: alias, aliasOf: o.addr})
		}
	}
	return out
}

// Own gives the addresses of the host port their aliases.
func Own(a *model.Attachments) map[netip.Addr]netip.Addr {
	var own []netip.Addr
	for i := range a.Ports {
		if a.Ports[i].Kind == model.PortHost {
			own = append(own, a.Ports[i].Addresses...)
		}
	}
	return model.AliasesOf(own)
}
