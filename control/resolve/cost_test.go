package resolve

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/model"
)

// BenchmarkManyPorts resolves a Service with ports and ten slices that have all of them: the
// cost of a port must not grow with their number.
func BenchmarkManyPorts(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10"}}
		var all []*discoveryv1.EndpointSlice
		for i := range 10 {
			all = append(all, &discoveryv1.EndpointSlice{
				AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.244.1.%d", i)}}},
			})
		}
		for i := range n {
			name, number := fmt.Sprintf("port-%d", i), int32(i+1)
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: name, Port: number})
			for _, es := range all {
				es.Ports = append(es.Ports, discoveryv1.EndpointPort{Name: &name, Port: &number})
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if s, problems := Service(svc, all, model.Node{}); s == nil || len(s.Ports) != n || len(problems) > 0 {
					b.Fatalf("%+v, Problems %v", s, problems)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/port")
		})
	}
}
