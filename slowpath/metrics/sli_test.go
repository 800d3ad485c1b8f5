package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/health"
)

// TestSLIs: each check under the names of Kubernetes, as it came out last, and how often.
func TestSLIs(t *testing.T) {
	m := New("v1", func() Reading { return Reading{} })
	m.Pinged()
	m.Probed("/livez", 200, []health.Check{{Name: health.CheckPublishing, Holds: true}})
	m.Probed("/healthz", 503, []health.Check{{Name: health.CheckPublishing, Holds: true}, {Name: health.CheckNode}})
	m.Probed("/healthz", 200, []health.Check{{Name: health.CheckNode, Holds: true}})
	m.Probed("/healthz", 503, []health.Check{{Name: health.CheckNode}})
	w := httptest.NewRecorder()
	m.SLIs().ServeHTTP(w, httptest.NewRequest("GET", "/metrics/slis", nil))
	page := w.Body.String()
	for _, line := range []string{
		`kubernetes_healthcheck{name="ping",type="healthz"} 1`,
		`kubernetes_healthcheck{name="publishing",type="livez"} 1`,
		`kubernetes_healthcheck{name="publishing",type="healthz"} 1`,
		`kubernetes_healthcheck{name="node-eligible",type="healthz"} 0`,
		`kubernetes_healthchecks_total{name="node-eligible",status="error",type="healthz"} 2`,
		`kubernetes_healthchecks_total{name="node-eligible",status="success",type="healthz"} 1`,
		`kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("no line %s in\n%s", line, page)
		}
	}
	if strings.Contains(page, "lace_") {
		t.Error("metrics of another page are among them")
	}
}
