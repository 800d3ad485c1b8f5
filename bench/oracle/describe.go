package oracle

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Describe is a cluster as JSON, an object a line; with a Service, that one's objects and
// the nodes alone.
func Describe(c *Cluster, service *corev1.Service) string {
	var out strings.Builder
	put := func(o any) {
		b, err := json.Marshal(o)
		if err != nil {
			out.WriteString(err.Error())
		}
		out.Write(append(b, '\n'))
	}
	for _, n := range c.Nodes {
		put(map[string]any{"node": n.Name, "labels": n.Labels, "addresses": n.Status.Addresses})
	}
	services, all := c.Services, c.Slices
	if service != nil {
		services, all = []*corev1.Service{service}, c.slicesOf(service)
	}
	for _, s := range services {
		put(s)
	}
	for _, s := range all {
		put(s)
	}
	return out.String()
}
