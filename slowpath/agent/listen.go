package agent

import (
	"errors"
	"io/fs"

	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver"
	"lace-cni.io/lace/slowpath/health"
	"lace-cni.io/lace/slowpath/metrics"
)

// closer is a server that listens and does not run yet.
type closer interface{ Close() error }

// listen opens every server, or none: an address that is taken ends the start before
// anything was changed.
func (c *Config) listen(seen *observer, m *metrics.Metrics, mended *repairs) (run []part, err error) {
	var open []closer
	defer func() {
		if err != nil {
			for _, s := range open {
				_ = s.Close()
			}
		}
	}()
	admin, err := adminserver.New(adminserver.Config{Socket: c.path("agent.sock"), Node: seen, Log: c.Log, Repaired: mended.note(repairSocket)})
	if err != nil {
		return nil, err
	}
	open, run = append(open, admin), append(run, admin.Run)
	if c.HealthAddr != "" {
		var probes *health.Server
		if probes, err = health.NewProbes(c.HealthAddr, seen.health, m.Probed, c.Log); err != nil {
			return nil, err
		}
		open, run = append(open, probes), append(run, probes.Run)
	}
	if c.MetricsAddr != "" {
		var scraped *health.Server
		if scraped, err = health.NewMetrics(c.MetricsAddr, c.pages(m), c.Log); err != nil {
			return nil, err
		}
		run = append(run, scraped.Run)
	}
	return run, nil
}

// pages are what the metrics server shows.
func (c *Config) pages(m *metrics.Metrics) health.Pages {
	return health.Pages{Metrics: m.Handler(), SLIs: m.SLIs(), Pinged: m.Pinged, Configuration: c.effective(), Profiling: c.Profiling}
}

// knownPorts are those of the last snapshot, whose ids go on. Without one, or with a
// damaged one, ids begin anew.
func (c *Config) knownPorts() []table.Port {
	s, err := table.Open(c.path("snapshot"))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.Log.Warn("the last snapshot cannot be read, port ids begin anew", "error", err)
		}
		return nil
	}
	defer s.Close()
	return append([]table.Port(nil), s.Ports()...)
}
