package resolve

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// clusterIPs returns the Service's own addresses, at most one per family, in the order
// of the object. A family counts when the Service lists it (or lists none) and has an
// address of it.
func clusterIPs(svc *corev1.Service, r *report) []netip.Addr {
	texts, path := written(svc, r)
	families := ipFamilies(svc, r)
	var out []netip.Addr
	seen := map[int]bool{}
	for i, s := range texts {
		field := path(i)
		a, wrong := parse(s)
		if wrong != "" {
			r.add(field, "BadAddress", "%q %s; give the Service an address of the service range", s, wrong)
			continue
		}
		f := family(a)
		switch {
		case len(families) > 0 && !slices.Contains(families, f):
			r.add(field, "WrongFamily", "%s is not of a family that spec.ipFamilies lists; add %s there, or remove the address", a, familyName(f))
		case seen[f]:
			r.add(field, "SecondAddress", "%s is a second %s address, and a Service has one per family; remove it", a, familyName(f))
		default:
			seen[f] = true
			out = append(out, a)
		}
	}
	if len(texts) > len(out) { // said already
		return out
	}
	for _, f := range families {
		if !seen[f] {
			r.add("spec.ipFamilies", "NoAddress", "%s is listed, but spec.clusterIPs has no address of it; add one, or remove the family", familyName(f))
		}
	}
	return out
}

// written returns the addresses as written and the field path of each.
func written(svc *corev1.Service, r *report) ([]string, func(int) string) {
	one, many := svc.Spec.ClusterIP, svc.Spec.ClusterIPs
	listed := func(i int) string { return fmt.Sprintf("spec.clusterIPs[%d]", i) }
	switch {
	case len(many) == 0 && one == "":
		r.add("spec.clusterIP", "NoAddress", "the Service has no address and nothing here allocates one; write an address of the service range, or None for a headless Service")
		return nil, listed
	case len(many) == 0:
		return []string{one}, func(int) string { return "spec.clusterIP" }
	case one != "" && one != many[0]:
		r.add("spec.clusterIP", "Contradiction", "%q is not the first of spec.clusterIPs (%q), which is used; make them equal", one, many[0])
	}
	return many, listed
}

// ipFamilies are those that the Service lists. A list that cannot be read whole is none: the
// addresses say what is meant.
func ipFamilies(svc *corev1.Service, r *report) (out []int) {
	known := true
	for i, f := range svc.Spec.IPFamilies {
		switch f {
		case corev1.IPv4Protocol:
			out = append(out, 4)
		case corev1.IPv6Protocol:
			out = append(out, 6)
		default:
			r.add(fmt.Sprintf("spec.ipFamilies[%d]", i), "UnknownFamily", "%q is no address family; write IPv4 or IPv6", f)
			known = false
		}
	}
	if !known {
		return nil
	}
	return out
}
