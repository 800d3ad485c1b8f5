package resolve_test

import (
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// TestHealthPort: only a LoadBalancer under Local has one.
func TestHealthPort(t *testing.T) {
	const balanced = `
metadata: {namespace: demo, name: web}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  healthCheckNodePort: 32100
  clusterIP: 10.96.0.10
  ports: [{port: 80}]
`
	for _, c := range []struct {
		name     string
		old, new string
		want     uint16
	}{
		{"a LoadBalancer under Local has the port that was allocated", "", "", 32100},
		{"under Cluster it has none", "externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster", 0},
		{"a NodePort Service has none, whatever its policy", "type: LoadBalancer", "type: NodePort", 0},
		{"a number that is no port is none", "32100", "99999", 0},
		{"one that was not given is none", "healthCheckNodePort: 32100", "", 0},
	} {
		s, _ := resolve.Service(decodeService(t, strings.Replace(balanced, c.old, c.new, 1)), nil, model.Node{Name: "n1"})
		if s == nil || s.HealthPort != c.want {
			t.Errorf("%s: %+v, want port %d", c.name, s, c.want)
		}
	}
}
