package resolve

import (
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
)

// slice is an EndpointSlice after validation, its endpoints still without a port.
type slice struct {
	family    int
	ports     map[portName]uint16
	endpoints []model.Endpoint
}

// portName is by what a port of a Service and one of a slice are the same.
type portName struct {
	name     string
	protocol model.Protocol
}

// readSlice validates a slice. Slices of host names are no concern of a proxy.
func readSlice(es *discoveryv1.EndpointSlice) (s slice, problems []model.Problem) {
	r := &report{kind: "EndpointSlice", object: nameOf(es.Namespace, es.Name).String()}
	switch es.AddressType {
	case discoveryv1.AddressTypeIPv4:
		s.family = 4
	case discoveryv1.AddressTypeIPv6:
		s.family = 6
	case discoveryv1.AddressTypeFQDN:
		return slice{}, nil
	default:
		r.add("addressType", "UnknownFamily", "%q is no address type; write IPv4 or IPv6", es.AddressType)
		return slice{}, r.all()
	}
	s.ports = slicePorts(es, r)
	s.endpoints = make([]model.Endpoint, 0, len(es.Endpoints))
	for i := range es.Endpoints {
		if e, ok := endpoint(&es.Endpoints[i], s.family, i, r); ok {
			s.endpoints = append(s.endpoints, e)
		}
	}
	return s, r.all()
}

func slicePorts(es *discoveryv1.EndpointSlice, r *report) map[portName]uint16 {
	out := make(map[portName]uint16, len(es.Ports))
	for i := range es.Ports {
		p := &es.Ports[i]
		field := func(name string) string { return fmt.Sprintf("ports[%d].%s", i, name) }
		called := portName{name: value(p.Name)}
		var ok bool
		if called.protocol, ok = protocol(value(p.Protocol)); !ok {
			r.add(field("protocol"), "UnknownProtocol", "%q is not supported; write TCP, UDP or SCTP", *p.Protocol)
			continue
		}
		port, ok := number(value(p.Port))
		if !ok {
			r.add(field("port"), "BadPort", "%d is no port number; write 1 to 65535", value(p.Port))
			continue
		}
		if _, taken := out[called]; taken {
			r.add(field("name"), "DuplicateName", "%q/%s is an earlier port already, which is used; remove one of them", called.name, called.protocol)
			continue
		}
		out[called] = port
	}
	return out
}

// endpoint reads one endpoint. Only its first address counts, as the API says.
func endpoint(e *discoveryv1.Endpoint, fam, i int, r *report) (model.Endpoint, bool) {
	field := fmt.Sprintf("endpoints[%d].addresses", i)
	if len(e.Addresses) == 0 {
		r.add(field, "NoAddress", "the endpoint has no address; add one, or remove the endpoint")
		return model.Endpoint{}, false
	}
	a, wrong := parse(e.Addresses[0])
	if wrong != "" {
		r.add(field+"[0]", "BadAddress", "%q %s; write the address of the pod or host", e.Addresses[0], wrong)
		return model.Endpoint{}, false
	}
	if family(a) != fam {
		r.add(field+"[0]", "WrongFamily", "%s is no %s address, which addressType says; put it into a slice of its own family", a, familyName(fam))
		return model.Endpoint{}, false
	}
	out := model.Endpoint{
		Addr:        a,
		Node:        value(e.NodeName),
		Zone:        value(e.Zone),
		Ready:       e.Conditions.Ready == nil || *e.Conditions.Ready,
		Serving:     e.Conditions.Serving == nil || *e.Conditions.Serving,
		Terminating: e.Conditions.Terminating != nil && *e.Conditions.Terminating,
		Pod:         target(e),
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.ZoneHints = append(out.ZoneHints, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			out.NodeHints = append(out.NodeHints, n.Name)
		}
	}
	return out, true
}

func target(e *discoveryv1.Endpoint) string {
	if e.TargetRef == nil || e.TargetRef.Name == "" {
		return ""
	}
	return nameOf(e.TargetRef.Namespace, e.TargetRef.Name).String()
}

// value follows a pointer; nil is the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// readSlices validates the slices that are not labelled away.
func readSlices(all []*discoveryv1.EndpointSlice) (out []slice, problems []model.Problem) {
	for _, es := range all {
		if labelled(es.Labels) != "" {
			continue
		}
		s, ps := readSlice(es)
		problems = append(problems, ps...)
		if s.family != 0 {
			out = append(out, s)
		}
	}
	return out, problems
}

// endpointsFor merges the endpoints of one Service port in one family over all slices.
// Ports are matched by name and protocol, never by number: the slice has the number.
func endpointsFor(all []slice, fam int, name string, proto model.Protocol) []model.Endpoint {
	var out []model.Endpoint
	for i := range all {
		s := &all[i]
		port, there := s.ports[portName{name, proto}]
		if s.family != fam || !there {
			continue
		}
		out = slices.Grow(out, len(s.endpoints))
		for _, e := range s.endpoints {
			e.Port = port
			out = append(out, e)
		}
	}
	return eligible.Sort(out)
}
