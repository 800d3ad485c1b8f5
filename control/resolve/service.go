package resolve

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
)

// AnnotationDistribution on a Service makes Lace compute the nearest endpoints itself.
const AnnotationDistribution = "lace-cni.io/traffic-distribution"

// Service resolves one Service for one node. slices are those that name the Service, in
// any order. It returns nil when the Service is not proxied (see OptOut) or when nothing
// of it can be served, or when it alone is more than the tables hold; the Problems then say why.
func Service(svc *corev1.Service, slices []*discoveryv1.EndpointSlice, node model.Node) (*model.Service, []model.Problem) {
	if OptOut(svc, slices) != "" {
		return nil, nil
	}
	name := nameOf(svc.Namespace, svc.Name)
	r := &report{kind: "Service", object: name.String()}
	own := clusterIPs(svc, r)
	r.familyTold = r.any()
	served := ports(svc, r)
	if len(own) == 0 || len(served) == 0 {
		return nil, r.all()
	}
	from := origins(svc, own, node, r)
	if oversized(served, from, slices, r) {
		return nil, r.all()
	}
	out := &model.Service{
		Name:           name,
		UID:            string(svc.UID),
		Created:        svc.CreationTimestamp.Time,
		Type:           serviceType(svc, r),
		InternalPolicy: policy("spec.internalTrafficPolicy", string(value(svc.Spec.InternalTrafficPolicy)), r),
		ExternalPolicy: policy("spec.externalTrafficPolicy", string(svc.Spec.ExternalTrafficPolicy), r),
		Distribution:   distribution(svc, r),
		Affinity:       affinity(svc, r),
		Sources:        sources(svc, r),
	}
	out.HealthPort = healthPort(svc, out)
	checkFields(svc, r)
	nodePorts(svc, served, r)
	all, problems := readSlices(slices)
	for i := range served {
		p := &served[i]
		p.Frontends = frontends(p, from)
		p.Families = families(out, p, own, all, node)
		out.Ports = append(out.Ports, p.ServicePort)
	}
	problems = append(problems, unmatched(svc, slices, served)...)
	return out, append(r.all(), problems...)
}

// families decides the sets of one port for each family that the Service has.
func families(s *model.Service, p *servicePort, own []netip.Addr, all []slice, node model.Node) map[int]model.FamilyChoice {
	out := make(map[int]model.FamilyChoice, len(own))
	for _, a := range own {
		f := family(a)
		merged := endpointsFor(all, f, p.Name, p.Protocol)
		c := model.FamilyChoice{Endpoints: eligible.Unique(merged)}
		query := eligible.Query{Policy: s.InternalPolicy, Distribution: s.Distribution, Node: node}
		c.Internal = eligible.Select(merged, query)
		if reachedFromOutside(p) {
			query.Policy = s.ExternalPolicy
			c.External = eligible.Select(merged, query)
			query.Policy = model.PolicyCluster
			c.Cluster = eligible.Select(merged, query)
		}
		out[f] = c
	}
	return out
}

func reachedFromOutside(p *servicePort) bool {
	for _, f := range p.Frontends {
		if f.Kind != model.ClusterIP {
			return true
		}
	}
	return false
}

func serviceType(svc *corev1.Service, r *report) string {
	switch t := svc.Spec.Type; t {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		return string(t)
	case "":
	default:
		r.add("spec.type", "UnknownType", "%q is no Service type and is taken as ClusterIP; write ClusterIP, NodePort, LoadBalancer or ExternalName", t)
		r.typeTold = true
	}
	return string(corev1.ServiceTypeClusterIP)
}

func policy(field, s string, r *report) model.Policy {
	switch s {
	case "", "Cluster":
		return model.PolicyCluster
	case "Local":
		return model.PolicyLocal
	}
	r.add(field, "UnknownPolicy", "%q is no traffic policy and is taken as Cluster; write Cluster or Local", s)
	return model.PolicyCluster
}

func distribution(svc *corev1.Service, r *report) model.Distribution {
	switch v, ok := svc.Annotations[AnnotationDistribution]; {
	case v == model.PreferClosest.String():
		return model.PreferClosest
	case ok:
		r.add("metadata.annotations["+AnnotationDistribution+"]", "UnknownDistribution",
			"%q is not known and is ignored; write PreferClosest, or remove the annotation", v)
	}
	return model.ByHints
}

// unmatched finds slices none of whose ports is a port of the Service: almost always a
// slip in a name, which would otherwise show as a Service without endpoints.
func unmatched(svc *corev1.Service, slices []*discoveryv1.EndpointSlice, served []servicePort) (out []model.Problem) {
	names := make(map[portName]bool, len(served))
	for i := range served {
		names[portName{served[i].Name, served[i].Protocol}] = true
	}
	for _, es := range slices {
		if len(es.Ports) == 0 || es.AddressType == discoveryv1.AddressTypeFQDN || labelled(es.Labels) != "" || matches(es, names) {
			continue
		}
		out = append(out, model.Problem{
			Kind: "EndpointSlice", Object: nameOf(es.Namespace, es.Name).String(), Field: "ports", Reason: "NoSuchPort",
			Message: fmt.Sprintf("none of its ports is a port of Service %s; name and protocol must be the same in both", nameOf(svc.Namespace, svc.Name)),
		})
	}
	return out
}

// matches is lenient about ports that have a Problem of their own.
func matches(es *discoveryv1.EndpointSlice, served map[portName]bool) bool {
	for i := range es.Ports {
		proto, ok := protocol(value(es.Ports[i].Protocol))
		_, valid := number(value(es.Ports[i].Port))
		if !ok || !valid || served[portName{value(es.Ports[i].Name), proto}] {
			return true
		}
	}
	return false
}
