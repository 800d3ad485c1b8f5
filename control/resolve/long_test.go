package resolve_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
)

// TestWordsWithoutEndAreCut: a Problem shows the beginning of what is wrong, not all of it.
func TestWordsWithoutEndAreCut(t *testing.T) {
	svc := &corev1.Service{}
	svc.Namespace, svc.Name = "demo", "web"
	svc.Spec.ClusterIP = strings.Repeat("9", 100_000)
	svc.Spec.Type = corev1.ServiceType(strings.Repeat("T", 100_000))
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	_, problems := resolve.Service(svc, nil, model.Node{Name: "n1"})
	if len(problems) == 0 {
		t.Fatal("no Problem")
	}
	for _, p := range problems {
		if len(p.Message) > 2*model.MaxExcerpt {
			t.Errorf("%s has a message of %d bytes", p.Reason, len(p.Message))
		}
	}
}
