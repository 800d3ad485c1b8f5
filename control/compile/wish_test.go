package compile_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
)

// wish is a Service's claim to a frontend, in the slow model.
type wish struct {
	service  *model.Service
	frontend model.Frontend
	choice   model.FamilyChoice
}

// claims are all wishes by frontend, those of known age first, by age, and then by name.
func (w *world) claims() map[string][]wish {
	out := map[string][]wish{}
	all := slices.SortedFunc(maps.Values(w.services), func(a, b *model.Service) int {
		if a.Created.IsZero() != b.Created.IsZero() {
			return b.Created.Compare(a.Created)
		}
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return a.Name.Compare(b.Name)
	})
	for _, s := range all {
		for _, p := range s.Ports {
			for _, f := range p.Frontends {
				k := fmt.Sprint(f.Addr, f.Port, uint8(f.Protocol))
				out[k] = append(out[k], wish{s, f, p.Families[map[bool]int{true: 4, false: 6}[f.Addr.Is4()]]})
			}
		}
	}
	return out
}

// residence says who on this node has the address: "node", "pod" or nobody.
func (w *world) residence(a netip.Addr) string {
	for _, p := range w.wiring.Ports {
		if slices.Contains(p.Addresses, a) {
			if p.Kind == model.PortHost {
				return "node"
			}
			return "pod"
		}
	}
	if a == w.wiring.Node4 || a == w.wiring.Node6 {
		return "node"
	}
	return ""
}

// void says whether a wish is for what somebody on this node has.
func (w *world) void(l wish) bool {
	switch w.residence(l.frontend.Addr) {
	case "pod":
		return true
	case "node":
		return l.frontend.Kind == model.ClusterIP
	}
	return false
}

// narrow says whether a wish is for a port alone.
func (w *world) narrow(l wish) bool {
	a := l.frontend.Addr
	if l.frontend.Kind == model.ExternalIP {
		return true
	}
	return l.frontend.Kind == model.NodePort || w.residence(a) == "node" || l.frontend.Kind != model.ClusterIP && (w.nodes[a] || w.endpointAt(a))
}

// endpointAt says whether an endpoint of any Service has the address.
func (w *world) endpointAt(a netip.Addr) bool {
	for _, s := range w.services {
		for _, p := range s.Ports {
			for _, c := range p.Families {
				if slices.ContainsFunc(c.Endpoints, func(e model.Endpoint) bool { return e.Addr == a }) {
					return true
				}
			}
		}
	}
	return false
}

// holder is who has a frontend: the first, or the one that had it unless another is
// older for certain.
func (w *world) holder(k string, wishes []wish) wish {
	had := w.had(k, wishes)
	if had < 0 {
		return wishes[0]
	}
	for _, l := range wishes[:had] {
		if !l.service.Created.IsZero() && l.service.Created.Before(wishes[had].service.Created) {
			return l
		}
	}
	return wishes[had]
}

// had is who had a frontend in the last snapshot, or after a restart who looks most like
// it; -1: nobody.
func (w *world) had(k string, wishes []wish) int {
	if !w.restarted {
		return slices.IndexFunc(wishes, func(l wish) bool { return l.owner() == w.lastOwners[k] })
	}
	found, most := -1, 0
	for i, l := range wishes {
		n := 0
		for _, b := range l.keeps() {
			if slices.Contains(w.lastKeeps[k], b) {
				n++
			}
		}
		if n > most {
			found, most = i, n
		}
	}
	return found
}

func (l *wish) owner() string { return l.service.Name.String() + l.service.UID }

// offer writes everything that a frontend shows.
func (w *world) offer(l wish, vips map[netip.Addr]bool) string {
	inside, outside := l.choice.Internal, l.choice.Internal
	if l.frontend.Kind != model.ClusterIP {
		inside, outside = l.choice.Cluster, l.choice.External
	}
	text := fmt.Sprintf("narrow=%v affinity=%d from=%s", w.narrow(l), l.service.Affinity, l.from())
	for _, c := range []model.Choice{inside, outside} {
		empty := " | 0"
		if len(c.Endpoints) == 0 && c.Any {
			empty = " | 1"
		}
		text += empty + addresses(c.Endpoints, vips)
	}
	var keep []model.Endpoint
	for _, e := range l.choice.Endpoints {
		if e.Ready || e.Serving {
			keep = append(keep, e)
		}
	}
	return text + " | keep" + addresses(keep, vips)
}

func addresses(endpoints []model.Endpoint, vips map[netip.Addr]bool) (text string) {
	for _, e := range endpoints {
		if !vips[e.Addr] {
			text += " " + e.Addr.String()
		}
	}
	return text
}

// from writes the sources of a frontend: the tests use prefixes that do not touch, sorted.
func (l *wish) from() string {
	from, ok := l.service.Sources[map[bool]int{true: 4, false: 6}[l.frontend.Addr.Is4()]]
	if !ok || l.frontend.Kind != model.LoadBalancer {
		return "all"
	}
	text := "some"
	for _, p := range from {
		text += " " + p.Addr().String()
	}
	return text
}

func (l *wish) keeps() (out []string) {
	for _, e := range l.choice.Endpoints {
		if e.Ready || e.Serving {
			out = append(out, fmt.Sprint(e.Addr, e.Port, uint8(l.frontend.Protocol)))
		}
	}
	return out
}

// modelBackends puts the endpoints into the view: they serve when one Service says so.
func (l *wish) modelBackends(v *view, vips map[netip.Addr]bool) {
	for _, e := range l.choice.Endpoints {
		k := fmt.Sprint(e.Addr, e.Port, uint8(l.frontend.Protocol))
		switch {
		case vips[e.Addr]:
		case e.Ready || e.Serving:
			v.Backends[k] = "1"
		case v.Backends[k] == "":
			v.Backends[k] = "0"
		}
	}
}
