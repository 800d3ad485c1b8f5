package main

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// suffix of every name that is answered, but for reverse ones.
const suffix = ".svc.cluster.local."

// zone is what the cluster's names stand for.
type zone struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// records that answer a question; known is false when there is no such name.
func (z *zone) records(q dnsmessage.Question) (all []dnsmessage.Resource, known bool) {
	h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5}
	add := func(body dnsmessage.ResourceBody) { all = append(all, dnsmessage.Resource{Header: h, Body: body}) }
	name := strings.ToLower(q.Name.String())
	if q.Type == dnsmessage.TypePTR {
		for _, s := range z.reverse(name) {
			add(&dnsmessage.PTRResource{PTR: s})
		}
		return all, len(all) > 0
	}
	if ports := z.ports(name); len(ports) > 0 {
		for i := range ports {
			if q.Type == dnsmessage.TypeSRV {
				add(&ports[i])
			}
		}
		return all, true
	}
	addresses, alias, known := z.lookup(name)
	if n, err := dnsmessage.NewName(alias); alias != "" && err == nil {
		add(&dnsmessage.CNAMEResource{CNAME: n})
		h.Name = n
		addresses, _, _ = z.lookup(strings.ToLower(alias))
	}
	for _, a := range addresses {
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			add(&dnsmessage.AResource{A: a.As4()})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			add(&dnsmessage.AAAAResource{AAAA: a.As16()})
		}
	}
	return all, known
}

// lookup of SERVICE.NAMESPACE or HOSTNAME.SERVICE.NAMESPACE below the suffix.
func (z *zone) lookup(name string) (addresses []netip.Addr, alias string, known bool) {
	rest, ours := strings.CutSuffix(name, suffix)
	parts := strings.Split(rest, ".")
	host := ""
	if len(parts) == 3 {
		host, parts = parts[0], parts[1:]
	}
	if !ours || len(parts) != 2 {
		return nil, "", false
	}
	s, err := z.services.Services(parts[1]).Get(parts[0])
	switch {
	case err != nil:
		return nil, "", false
	case s.Spec.Type == v1.ServiceTypeExternalName:
		return nil, strings.TrimSuffix(s.Spec.ExternalName, ".") + ".", true
	case s.Spec.ClusterIP != v1.ClusterIPNone:
		return clusterAddresses(s), "", host == ""
	}
	addresses = z.endpoints(s, host)
	return addresses, "", host == "" || len(addresses) > 0
}

func clusterAddresses(s *v1.Service) (all []netip.Addr) {
	for _, c := range s.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(c); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// endpoints of a headless Service, of one hostname unless that is empty.
func (z *zone) endpoints(s *v1.Service, host string) (all []netip.Addr) {
	listed, err := z.slices.EndpointSlices(s.Namespace).List(labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: s.Name}))
	if err != nil {
		return nil
	}
	for _, slice := range listed {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			ready := s.Spec.PublishNotReadyAddresses || e.Conditions.Ready == nil || *e.Conditions.Ready
			if !ready || host != "" && !slices.Contains(hostnames(e), host) {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// reverse finds the Services of a cluster address by its name below arpa.
func (z *zone) reverse(name string) (all []dnsmessage.Name) {
	services, err := z.services.List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, s := range services {
		for _, a := range clusterAddresses(s) {
			if n, err := dnsmessage.NewName(s.Name + "." + s.Namespace + suffix); err == nil && arpa(a) == name {
				all = append(all, n)
			}
		}
	}
	return all
}

// arpa is the name under which an address is looked up (RFC 1035 3.5, RFC 3596 2.5).
func arpa(a netip.Addr) string {
	var b strings.Builder
	bytes := a.AsSlice()
	for i := len(bytes) - 1; i >= 0; i-- {
		if a.Is4() {
			b.WriteString(strconv.Itoa(int(bytes[i])) + ".")
			continue
		}
		for _, nibble := range []byte{bytes[i] & 15, bytes[i] >> 4} {
			b.WriteString(strconv.FormatInt(int64(nibble), 16) + ".")
		}
	}
	if a.Is4() {
		return b.String() + "in-addr.arpa."
	}
	return b.String() + "ip6.arpa."
}
