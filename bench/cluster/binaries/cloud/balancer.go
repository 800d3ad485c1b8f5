package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// finalizer keeps a Service until its balancer is gone.
const finalizer = "service.kubernetes.io/load-balancer-cleanup"

// balancer gives Services addresses, and takes them back.
type balancer struct {
	client kubernetes.Interface
	router *router
	ids    map[string]int // number of a Service's addresses, by UID
}

func (b *balancer) sync(ctx context.Context) error {
	services, err := b.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	routes := map[netip.Addr][]netip.Addr{}
	for i := range services.Items {
		s := &services.Items[i]
		if !balanced(s) {
			errs = append(errs, b.release(ctx, s))
			continue
		}
		addresses, err := b.give(ctx, s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		via, err := b.nodes(ctx, s, nodes.Items)
		errs = append(errs, err)
		for _, a := range addresses {
			if len(via[family(a)]) > 0 {
				routes[a] = via[family(a)]
			}
		}
	}
	return errors.Join(append(errs, b.router.sync(routes))...)
}

// balanced says whether a Service is one for this cloud.
func balanced(s *v1.Service) bool {
	return s.Spec.Type == v1.ServiceTypeLoadBalancer && s.DeletionTimestamp == nil && s.Spec.LoadBalancerClass == nil
}

// give a Service its addresses.
func (b *balancer) give(ctx context.Context, s *v1.Service) ([]netip.Addr, error) {
	services := b.client.CoreV1().Services(s.Namespace)
	if !slices.Contains(s.Finalizers, finalizer) {
		s.Finalizers = append(s.Finalizers, finalizer)
		next, err := services.Update(ctx, s, metav1.UpdateOptions{})
		if err != nil {
			return nil, err
		}
		s = next
	}
	id, ok := b.ids[string(s.UID)]
	if !ok {
		id = len(b.ids) + 1
		b.ids[string(s.UID)] = id
	}
	var addresses []netip.Addr
	var ingress []v1.LoadBalancerIngress
	for _, f := range s.Spec.IPFamilies {
		a := netip.AddrFrom4([4]byte{172, 30, 1, byte(id%250 + 1)})
		if f == v1.IPv6Protocol {
			a = netip.MustParseAddr(fmt.Sprintf("fd30:0:0:1::%x", id))
		}
		addresses = append(addresses, a)
		ingress = append(ingress, v1.LoadBalancerIngress{IP: a.String()})
	}
	if len(s.Status.LoadBalancer.Ingress) == len(ingress) {
		return addresses, nil
	}
	s.Status.LoadBalancer.Ingress = ingress
	_, err := services.UpdateStatus(ctx, s, metav1.UpdateOptions{})
	return addresses, err
}

// release what a Service was given.
func (b *balancer) release(ctx context.Context, s *v1.Service) (err error) {
	services := b.client.CoreV1().Services(s.Namespace)
	if _, ok := b.ids[string(s.UID)]; ok && s.Spec.LoadBalancerClass == nil && len(s.Status.LoadBalancer.Ingress) > 0 {
		s.Status.LoadBalancer = v1.LoadBalancerStatus{}
		if s, err = services.UpdateStatus(ctx, s, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if i := slices.Index(s.Finalizers, finalizer); i >= 0 {
		s.Finalizers = slices.Delete(s.Finalizers, i, i+1)
		_, err = services.Update(ctx, s, metav1.UpdateOptions{})
	}
	return err
}

// nodes that a Service's packets are sent to: their internal addresses, by family. It is one
// node, which is as good as any other, but under policy Local, where a node chooses among its
// own endpoints: then it is all that have some, unless a client is to stay with one.
func (b *balancer) nodes(ctx context.Context, s *v1.Service, nodes []v1.Node) (via [2][]netip.Addr, err error) {
	local := s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
	var ready map[string]bool
	if local {
		if ready, err = b.ready(ctx, s); err != nil {
			return via, err
		}
	}
	for i := range nodes {
		if local && !ready[nodes[i].Name] {
			continue
		}
		for _, x := range nodes[i].Status.Addresses {
			if a, err := netip.ParseAddr(x.Address); err == nil && x.Type == v1.NodeInternalIP {
				via[family(a)] = append(via[family(a)], a)
			}
		}
		if !local || s.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
			break
		}
	}
	return via, nil
}

// ready lists the nodes that have a ready endpoint of a Service.
func (b *balancer) ready(ctx context.Context, s *v1.Service) (map[string]bool, error) {
	slices, err := b.client.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + s.Name})
	if err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.NodeName != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				ready[*e.NodeName] = true
			}
		}
	}
	return ready, nil
}
