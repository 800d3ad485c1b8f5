package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lace-cni.io/lace/slowpath/health"
)

// families are those of kube-proxy's label ip_family. Here one publication brings both.
var families = []string{"IPv4", "IPv6"}

const family = "ip_family"

// kubeProxyTable is what kube-proxy counts under these names and what means the same here,
// read on scrape.
var kubeProxyTable = []metric{
	{"kubeproxy_sync_proxy_rules_last_timestamp_seconds", "When the last publication came into use, in seconds since 1970", gauge, []string{family}, lastApplied},
	{"kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "When the last change was queued for publication, in seconds since 1970", gauge, []string{family}, lastQueued},
	{"kubeproxy_sync_proxy_rules_service_changes_total", "Changes of Services that were read", count, nil, func(r *Reading, to send) { to(float64(r.Changes.Services)) }},
	{"kubeproxy_sync_proxy_rules_service_changes_pending", "Services with changes that are not published yet", gauge, nil, func(r *Reading, to send) { to(float64(r.Changes.ServicesPending)) }},
	{"kubeproxy_sync_proxy_rules_endpoint_changes_total", "Changes of EndpointSlices that were read", count, nil, func(r *Reading, to send) { to(float64(r.Changes.Slices)) }},
	{"kubeproxy_sync_proxy_rules_endpoint_changes_pending", "EndpointSlices with changes that are not published yet", gauge, nil, func(r *Reading, to send) { to(float64(r.Changes.SlicesPending)) }},
	{"kubeproxy_sync_proxy_rules_no_local_endpoints_total", "Service ports under a Local traffic policy that have endpoints, but none on this node", gauge, []string{"traffic_policy", family}, withoutLocal},
}

// Changes are what came from the source, and what of it waits.
type Changes struct {
	Services, Slices               uint64    // read since the agent began
	ServicesPending, SlicesPending int       // not published yet
	Queued                         time.Time // when the last change came; zero: none yet
	Applied                        time.Time // when the last publication came into use; zero: none yet
}

// WithoutLocal counts Service ports under a Local policy that drop for want of an endpoint
// on this node.
type WithoutLocal struct{ Internal, External int }

func lastApplied(r *Reading, to send) {
	for _, f := range families {
		to(seconds(r.Changes.Applied), f)
	}
}

func lastQueued(r *Reading, to send) {
	for _, f := range families {
		to(seconds(r.Changes.Queued), f)
	}
}

func withoutLocal(r *Reading, to send) {
	for i, f := range families {
		to(float64(r.WithoutLocal[i].Internal), "internal", f)
		to(float64(r.WithoutLocal[i].External), "external", f)
	}
}

// kubeProxy are kube-proxy's metrics that are observed as things happen.
type kubeProxy struct {
	sync, programming *prometheus.HistogramVec
	healthz, livez    *prometheus.CounterVec
}

func newKubeProxy(to *prometheus.Registry) *kubeProxy {
	k := &kubeProxy{
		sync: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kubeproxy_sync_proxy_rules_duration_seconds",
			Help:    "Time that a publication took, from the work on its changes to the moment the fast path used it",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{family}),
		programming: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kubeproxy_network_programming_duration_seconds",
			Help:    "Time from a change of endpoints, as their EndpointSlice is annotated, to the moment the fast path used it",
			Buckets: programmingBuckets(),
		}, []string{family}),
		healthz: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubeproxy_proxy_healthz_total", Help: "Answers of healthz by their code",
		}, []string{"code"}),
		livez: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubeproxy_proxy_livez_total", Help: "Answers of livez by their code",
		}, []string{"code"}),
	}
	for _, f := range families {
		k.sync.WithLabelValues(f)
		k.programming.WithLabelValues(f)
	}
	for _, code := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		k.healthz.WithLabelValues(strconv.Itoa(code))
		k.livez.WithLabelValues(strconv.Itoa(code))
	}
	to.MustRegister(k.sync, k.programming, k.healthz, k.livez)
	return k
}

// programmingBuckets reach from a quarter of a second to five minutes, finer where most
// clusters are, as kube-proxy's do.
func programmingBuckets() (out []float64) {
	out = append(out, prometheus.LinearBuckets(0.25, 0.25, 2)...)
	out = append(out, prometheus.LinearBuckets(1, 1, 59)...)
	out = append(out, prometheus.LinearBuckets(60, 5, 12)...)
	return append(out, prometheus.LinearBuckets(120, 30, 7)...)
}

// Applied observes how long a publication took, from the beginning of the work on it until
// it was in use.
func (m *Metrics) Applied(d time.Duration) {
	for _, f := range families {
		m.kubeProxy.sync.WithLabelValues(f).Observe(d.Seconds())
	}
}

// EndpointsInUse observes the time from a change of endpoints of a family, which is IPv4 or
// IPv6, as the cluster tells it, until it was in use.
func (m *Metrics) EndpointsInUse(family string, d time.Duration) {
	m.kubeProxy.programming.WithLabelValues(family).Observe(d.Seconds())
}

// Probed counts an answer of /healthz or /livez, and what it followed from.
func (m *Metrics) Probed(path string, code int, checks []health.Check) {
	of := m.kubeProxy.healthz
	if path == "/livez" {
		of = m.kubeProxy.livez
	}
	of.WithLabelValues(strconv.Itoa(code)).Inc()
	for _, c := range checks {
		m.slis.note(strings.TrimPrefix(path, "/"), c)
	}
}
