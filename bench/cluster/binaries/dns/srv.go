package main

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// named is a port's name and protocol, as in _http._tcp (RFC 2782).
type named struct{ name, protocol string }

func (n named) is(name string, p v1.Protocol) bool {
	return n.name == name && n.protocol == strings.ToLower(string(p))
}

// ports finds _PORT._PROTOCOL.SERVICE.NAMESPACE below the suffix: one record for a cluster
// address, one for each endpoint of a headless Service.
func (z *zone) ports(name string) (all []dnsmessage.SRVResource) {
	rest, ours := strings.CutSuffix(name, suffix)
	parts := strings.Split(rest, ".")
	if !ours || len(parts) != 4 || !strings.HasPrefix(parts[0], "_") || !strings.HasPrefix(parts[1], "_") {
		return nil
	}
	want := named{parts[0][1:], parts[1][1:]}
	s, err := z.services.Services(parts[3]).Get(parts[2])
	if err != nil {
		return nil
	}
	add := func(host string, port uint16) {
		if n, err := dnsmessage.NewName(host + s.Name + "." + s.Namespace + suffix); err == nil {
			all = append(all, dnsmessage.SRVResource{Weight: 1, Port: port, Target: n})
		}
	}
	if s.Spec.ClusterIP == v1.ClusterIPNone {
		z.endpointPorts(s, want, add)
		return all
	}
	for _, p := range s.Spec.Ports {
		if want.is(p.Name, p.Protocol) {
			add("", uint16(p.Port))
		}
	}
	return all
}

func (z *zone) endpointPorts(s *v1.Service, want named, add func(host string, port uint16)) {
	slices, err := z.slices.EndpointSlices(s.Namespace).List(labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: s.Name}))
	if err != nil {
		return
	}
	for _, slice := range slices {
		for _, p := range slice.Ports {
			if p.Name == nil || p.Protocol == nil || p.Port == nil || !want.is(*p.Name, *p.Protocol) {
				continue
			}
			for i := range slice.Endpoints {
				for _, host := range hostnames(&slice.Endpoints[i]) {
					add(host+".", uint16(*p.Port))
				}
			}
		}
	}
}

// hostnames of an endpoint below its Service: its own, or its addresses with dashes.
func hostnames(e *discovery.Endpoint) (all []string) {
	if e.Hostname != nil && *e.Hostname != "" {
		return []string{*e.Hostname}
	}
	for _, text := range e.Addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, dashed(a))
		}
	}
	return all
}

func dashed(a netip.Addr) string { return strings.NewReplacer(".", "-", ":", "-").Replace(a.String()) }
