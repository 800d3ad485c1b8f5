//go:build cluster

package cluster

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// inUse waits until a node's workers go by exactly this endpoint of a Service.
func (w *world) inUse(service, address string) {
	w.t.Helper()
	n := w.Node("n1")
	admin := n.Admin()
	defer admin.Close()
	w.eventually(service+" at "+address, func() error {
		if got := w.backends(n, service); got != address {
			return errors.New(got)
		}
		s, err := admin.Status(w.t.Context())
		if err != nil {
			return err
		}
		if g := s.Generation; g.InUse == 0 || g.InUse < g.Published {
			return errors.New("not in use")
		}
		return nil
	})
}

// BenchmarkEndpointChange replaces the one endpoint of a Service, from before the request
// to the API server until the workers of a node go by it. It looks every 5 ms.
func BenchmarkEndpointChange(b *testing.B) {
	w := newWorld(b)
	w.grant()
	w.ready()
	_, err := w.CreateService(b.Context(), Service("byhand", nil))
	w.must(err)
	w.must(w.SetEndpoints(b.Context(), "byhand", "192.0.2.1"))
	w.inUse("byhand", "192.0.2.1")
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		address := fmt.Sprintf("192.0.2.%d", 2+i%200)
		begin := time.Now()
		w.must(w.SetEndpoints(b.Context(), "byhand", address))
		w.inUse("byhand", address)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

const (
	largeServices  = 5000
	largeEndpoints = 50
)

// BenchmarkLargeCluster starts an agent on a cluster of 5,000 Services with 50 endpoints
// each, from the start of its process until the workers go by all of them, and tells
// what it keeps in memory afterwards.
func BenchmarkLargeCluster(b *testing.B) {
	w := newWorld(b)
	w.grant()
	w.ready()
	n := w.Node("n1")
	for _, other := range w.Nodes() {
		w.must(w.KillAgent(b.Context(), other))
	}
	w.fill()
	for b.Loop() {
		begin := time.Now()
		pid, err := w.StartAgent(b.Context(), n, AgentUser)
		w.must(err)
		w.eventually("everything in use", func() error {
			admin := n.Admin()
			defer admin.Close()
			s, err := admin.Status(b.Context())
			switch {
			case err != nil:
				return err
			case !s.Ready || s.Objects.Services < largeServices || s.Generation.InUse < s.Generation.Published:
				return fmt.Errorf("%d Services, generation %+v", s.Objects.Services, s.Generation)
			}
			return nil
		})
		b.ReportMetric(time.Since(begin).Seconds(), "complete-s")
		quiet := time.After(5 * time.Second) // for what the beginning took to be given back
		<-quiet
		kept, most := w.memory(n.PID(), pid)
		b.ReportMetric(kept, "MiB-kept")
		b.ReportMetric(most, "MiB-most")
		w.must(w.KillAgent(b.Context(), n))
	}
}

// fill makes the Services and their EndpointSlices.
func (w *world) fill() {
	w.t.Helper()
	ready := true
	group, ctx := errgroup.WithContext(w.t.Context())
	group.SetLimit(16)
	for i := range largeServices {
		group.Go(func() error {
			s := &corev1.Service{}
			s.Name = fmt.Sprintf("s%d", i)
			s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
			if err := w.API.Create(ctx, Services, s, nil); err != nil {
				return err
			}
			e := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
			e.Name, e.Labels = s.Name, map[string]string{discoveryv1.LabelServiceName: s.Name}
			port, name := int32(8080), ""
			e.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
			for k := range largeEndpoints {
				node, zone := fmt.Sprintf("node-%d", k), fmt.Sprintf("zone-%d", k%3)
				e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 128+i>>8, i&255, 1+k)}, NodeName: &node, Zone: &zone,
					Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
					TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-6d5f9c7b8-%05d", s.Name, k)},
				})
			}
			return w.API.Create(ctx, Slices, e, nil)
		})
	}
	w.must(group.Wait())
}

// memory of a process of a node, now and at its highest, in MiB.
func (w *world) memory(root, pid int) (now, most float64) {
	w.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/proc/%d/status", root, pid))
	w.must(err)
	for line := range strings.Lines(string(b)) {
		var kib float64
		if k, v, _ := strings.Cut(line, ":"); k == "VmRSS" || k == "VmHWM" {
			fmt.Sscan(v, &kib)
			if k == "VmRSS" {
				now = kib / 1024
			} else {
				most = kib / 1024
			}
		}
	}
	return now, most
}
