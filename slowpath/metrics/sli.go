package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lace-cni.io/lace/slowpath/health"
)

// slis are the results of checks of health, by the names that all components of Kubernetes
// have for them, in a registry of their own: /metrics/slis is scraped more often.
type slis struct {
	registry *prometheus.Registry
	last     *prometheus.GaugeVec   // 1 or 0
	total    *prometheus.CounterVec // by how they came out
}

func newSLIs() *slis {
	s := &slis{
		registry: prometheus.NewRegistry(),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "Whether a check of health held when it was last asked for: 1 or 0",
		}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total", Help: "Checks of health that were asked for, by how they came out",
		}, []string{"name", "type", "status"}),
	}
	s.registry.MustRegister(s.last, s.total)
	return s
}

// SLIs serves the results of checks in the formats of Prometheus.
func (m *Metrics) SLIs() http.Handler {
	return promhttp.HandlerFor(m.slis.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Pinged counts an answer of /healthz at the metrics address, which always holds.
func (m *Metrics) Pinged() { m.slis.note("healthz", health.Check{Name: "ping", Holds: true}) }

func (s *slis) note(kind string, c health.Check) {
	last, status := 0.0, "error"
	if c.Holds {
		last, status = 1, "success"
	}
	s.last.WithLabelValues(c.Name, kind).Set(last)
	s.total.WithLabelValues(c.Name, kind, status).Inc()
}
