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

// resident says whether somebody on this node has the address.
func (w *world) resident(a netip.Addr) bool {
	for _, p := range w.wiring.Ports {
		if slices.Contains(p.Addresses, a) {
			return true
		}
	}
	return a == w.wiring.Node4 || a == w.wiring.Node6
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

func (l *wish) offer(vips map[netip.Addr]bool) string {
	text := "0"
	if len(l.choice.Internal.Endpoints) == 0 && l.choice.Internal.Any {
		text = "1"
	}
	for _, e := range l.choice.Internal.Endpoints {
		if !vips[e.Addr] {
			text += " " + e.Addr.String()
		}
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
