package compile

import "lace-cni.io/lace/control/model"

// Lost lists what Services ask for and do not have since somebody else has it, as of the last
// snapshot; aliases are left out. It is the callers' to keep, and nobody's to change.
func (c *Compiler) Lost() model.Lost { return c.disputes.lost }

func (c *Compiler) findLost() model.Lost {
	out := model.Lost{}
	for f := range c.contested {
		if f.holder == nil {
			continue
		}
		for _, l := range f.claims.inOrder() {
			if l != f.holder && l.service != f.holder.service && !l.aliasOf.IsValid() && !c.barred(l) {
				out[l.place()] = "Service " + f.holder.service.owner.name.String()
			}
		}
	}
	for f := range c.refused {
		for _, l := range f.claims.inOrder() {
			if c.barred(l) && !l.aliasOf.IsValid() {
				_, whose := c.whose(l)
				out[l.place()] = whose
			}
		}
	}
	return out
}

func (l *claim) place() model.Place {
	return model.Place{
		Service: l.service.declared.Name, Network: model.NetworkID(l.network), Addr: l.addr.Netip(),
		Port: l.port, Protocol: model.Protocol(l.protocol),
	}
}

// whose says who has the address of a claim that is barred, with the reason of its Problem.
func (c *Compiler) whose(l *claim) (reason, whose string) {
	answered := c.answered(l)
	switch r := c.residents[l.spot()]; {
	case answered != "":
		return "AddressOfLace", answered
	case c.kept(l):
		return "AddressOfAPIServer", "the API server"
	case r.kind == model.PortPod:
		return "AddressOfPod", "a pod of this node, behind device " + r.device
	}
	return "AddressOfNode", "this node itself"
}
