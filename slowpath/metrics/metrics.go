package metrics

import (
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is the registry of one agent. Its methods are safe for concurrent use.
type Metrics struct {
	registry    *prometheus.Registry
	programming prometheus.Histogram
	publish     prometheus.Histogram
	kubeProxy   *kubeProxy
	slis        *slis
}

// New registers everything. read is called once per scrape, from any goroutine.
func New(version string, read func() Reading) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		programming: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lace_network_programming_duration_seconds",
			Help: "Time from a change in the cluster to the snapshot that holds it",
			// The buckets of kube-proxy's histogram of the same meaning, with finer
			// ones below: a folder or a watch takes milliseconds here.
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300},
		}),
		publish: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lace_publish_duration_seconds",
			Help:    "Time that a publication took, from the first change in it to the written snapshot",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "lace_build_info",
		Help:        "Version of the agent and of the Go that built it",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	m.registry.MustRegister(
		build, m.programming, m.publish, newCollector(read),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.kubeProxy, m.slis = newKubeProxy(m.registry), newSLIs()
	return m
}

// Handler serves the registry in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Programmed observes the time from a change in the cluster to its publication.
func (m *Metrics) Programmed(d time.Duration) { m.programming.Observe(d.Seconds()) }

// PublishTook observes how long a publication took.
func (m *Metrics) PublishTook(d time.Duration) { m.publish.Observe(d.Seconds()) }

// onScrape is every metric that is read on scrape.
func onScrape() []metric { return slices.Concat(table, kubeProxyTable) }

// collector reads once per scrape and hands every metric of the table over.
type collector struct {
	read  func() Reading
	descs []*prometheus.Desc
}

func newCollector(read func() Reading) *collector {
	c := &collector{read: read}
	for _, m := range onScrape() {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	r := c.read()
	for i, m := range onScrape() {
		m.emit(&r, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(c.descs[i], m.kind, v, labels...)
		})
	}
}
