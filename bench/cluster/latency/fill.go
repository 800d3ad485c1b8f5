package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/bench/cluster"
)

// fillers is how many requests declare at a time.
const fillers = 16

// fill declares Services whose endpoints nobody has, as controllers write them, or gives those
// that are declared another number of endpoints.
func (s *stage) fill(ctx context.Context, services, endpoints int) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(fillers)
	for i := range services {
		all.Go(func() error {
			e := crowd(i, endpoints)
			if s.filled {
				return s.API.Put(ctx, cluster.Slices+"/"+e.Name, e, nil)
			}
			if _, err := s.CreateService(ctx, service(e.Name, corev1.ProtocolTCP)); err != nil {
				return err
			}
			return s.API.Create(ctx, cluster.Slices, e, nil)
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	s.filled = true
	return nil
}

// crowd is the slice of the i-th Service, with addresses of its own.
func crowd(i, endpoints int) *discoveryv1.EndpointSlice {
	e := slice(fmt.Sprintf("s%d", i), corev1.ProtocolTCP, targetPort)
	ready, terminating := true, false
	for k := range endpoints {
		node, zone := fmt.Sprintf("node-%d", k), fmt.Sprintf("zone-%d", k%3)
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 128+i>>8, i&255, 1+k)}, NodeName: &node, Zone: &zone,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: &terminating},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-6d5f9c7b8-%05d", e.Name, k)},
		})
	}
	return e
}
