package resolve

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"lace-cni.io/lace/control/model"
)

// PutServiceCIDR adds or replaces a ServiceCIDR; nil removes it.
func (o *Objects) PutServiceCIDR(name string, c *networkingv1.ServiceCIDR) {
	if c == nil {
		delete(o.ServiceCIDRs, name)
		return
	}
	o.ServiceCIDRs[name] = c
}

// Ranges are the service ranges that all ServiceCIDRs declare together: sorted, each
// once, and none that lies in another. One that is being deleted counts until it is
// gone, as Services may still have addresses in it.
func (o *Objects) Ranges() ([]netip.Prefix, []model.Problem) {
	names := make([]string, 0, len(o.ServiceCIDRs))
	for n := range o.ServiceCIDRs {
		names = append(names, n)
	}
	sort.Strings(names)
	var all []netip.Prefix
	var problems []model.Problem
	for _, n := range names {
		r := &report{kind: "ServiceCIDR", object: n}
		for i, text := range o.ServiceCIDRs[n].Spec.CIDRs {
			p, err := netip.ParsePrefix(text)
			if err != nil || p.Bits() == 0 || p.Addr().Is4In6() {
				r.add(fmt.Sprintf("spec.cidrs[%d]", i), "BadPrefix", "%q is no range of addresses; write one such as 10.96.0.0/16", text)
				continue
			}
			if s, overlaps := Special(p); overlaps {
				r.add(fmt.Sprintf("spec.cidrs[%d]", i), "BadRange", "%s overlaps %s, which is no Service's, and is not used; write a range such as 10.96.0.0/16", p, s)
				continue
			}
			all = append(all, p.Masked())
		}
		problems = append(problems, r.all()...)
	}
	return outermost(all), problems
}

// outermost drops prefixes that another one contains.
func outermost(all []netip.Prefix) (out []netip.Prefix) {
	slices.SortFunc(all, netip.Prefix.Compare)
	for _, p := range all {
		inside := func(q netip.Prefix) bool { return q.Overlaps(p) }
		if !slices.ContainsFunc(out, inside) { // a shorter one of the same address comes first
			out = append(out, p)
		}
	}
	return out
}

// Stray is a ClusterIP in none of the service ranges, and the Problem that it is where the
// Service has it.
type Stray struct {
	Addr    netip.Addr
	Problem model.Problem
}

// Outside finds ClusterIPs that are in none of the service ranges: the node has no route
// that would bring its own packets for them to Lace. When no range is known nothing is
// outside.
func Outside(s *model.Service, ranges []netip.Prefix) (out []Stray) {
	if len(ranges) == 0 {
		return nil
	}
	var seen []netip.Addr
	for i := range s.Ports {
		for _, f := range s.Ports[i].Frontends {
			in := func(p netip.Prefix) bool { return p.Contains(f.Addr) }
			if f.Kind != model.ClusterIP || slices.Contains(seen, f.Addr) || slices.ContainsFunc(ranges, in) {
				continue
			}
			seen = append(seen, f.Addr)
			out = append(out, Stray{f.Addr, model.Problem{
				Kind: "Service", Object: s.Name.String(), Field: "spec.clusterIPs", Reason: "OutsideServiceRanges",
				Message: fmt.Sprintf("%s is in none of the service ranges (%s): pods reach it, the node's own processes do not; add its range as a ServiceCIDR, or to --service-cidrs where that is given", f.Addr, words(ranges)),
			}})
		}
	}
	return out
}

// OfEndpoint is the Problem of a stray ClusterIP at which there are endpoints, those of the
// Service named among them: in no range of Services it is theirs.
func OfEndpoint(s Stray, of model.Name, ranges []netip.Prefix) model.Problem {
	p := s.Problem
	p.Reason = "AddressOfEndpoint"
	p.Message = fmt.Sprintf("%s is the address of an endpoint of Service %s, which gets no connections for it, and in none of the service ranges (%s); give this Service an address of these", s.Addr, of, words(ranges))
	return p
}

// Unranged is the Problem of a node that knows no service range while there are Services:
// nothing brings its own packets for them to Lace. nil: there is none.
func Unranged(node string, services []*model.Service, ranges []netip.Prefix) []model.Problem {
	if len(ranges) > 0 || len(services) == 0 {
		return nil
	}
	return []model.Problem{{
		Kind: "Node", Object: node, Field: "serviceCIDRs", Reason: "NoServiceRanges",
		Message: fmt.Sprintf("there are Services (%d, the first %s), and no service range is known: pods and clients outside reach their ClusterIPs, the node's own processes do not; add a ServiceCIDR that holds them, or start lace-agent with --service-cidrs", len(services), services[0].Name),
	}}
}

func words(ranges []netip.Prefix) string {
	out := make([]string, len(ranges))
	for i, p := range ranges {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}
