package servicehealth

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
)

// counts is how many endpoints of a Service are on this node, by family. A family that the
// Service does not have is not there.
type counts map[int]int

// count counts addresses of this node's endpoints that are ready, over all ports of the
// Service, each once. Those that serve while they terminate do not count: balancers should
// turn elsewhere while connections still drain.
func count(s *model.Service, node string) counts {
	out := counts{}
	seen := map[netip.Addr]bool{}
	for i := range s.Ports {
		for family, choice := range s.Ports[i].Families {
			out[family] += 0
			for _, e := range choice.Endpoints {
				if e.Node == node && e.Node != "" && e.Ready && !seen[e.Addr] {
					seen[e.Addr] = true
					out[family]++
				}
			}
		}
	}
	return out
}
