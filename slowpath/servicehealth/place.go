package servicehealth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"lace-cni.io/lace/control/model"
)

// Bounds of each port, and of all of them. Balancers ask a short question every few seconds.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 10 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeader      = 8 << 10
	maxConnections = 64
	maxTogether    = 1024 // of all ports
)

// place is where one family of one Service is asked about.
type place struct {
	service model.Name
	at      netip.AddrPort
}

func (p place) family() int {
	if p.at.Addr().Is4() {
		return 4
	}
	return 6
}

// network names the family, so that a socket of all addresses is one of its own family only.
func (p place) network() string { return fmt.Sprintf("tcp%d", p.family()) }

// places lists where the Services are asked about: at the addresses given, or, when all is
// true, at every one that the node has and will have.
func places(services []*model.Service, all bool, addresses []netip.Addr) map[place]bool {
	if all {
		addresses = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	out := map[place]bool{}
	for _, s := range services {
		if s.HealthPort == 0 {
			continue
		}
		for _, a := range addresses {
			p := place{s.Name, netip.AddrPortFrom(a, s.HealthPort)}
			if has(s, p.family()) {
				out[p] = true
			}
		}
	}
	return out
}

// has says whether the Service has the family; all of its ports have the same ones.
func has(s *model.Service, family int) bool {
	if len(s.Ports) == 0 {
		return false
	}
	_, there := s.Ports[0].Families[family]
	return there
}

// port is an open place.
type port struct {
	http *http.Server
	dead atomic.Bool // its socket failed; it is to be opened anew
}

// open listens at the place and serves until the port is closed.
func (s *Set) open(ctx context.Context, p place) (*port, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, p.network(), p.at.String())
	if err != nil {
		return nil, err
	}
	bounded := s.pool.Bound(l, maxConnections)
	o := &port{http: &http.Server{
		Handler:     s.handler(p.service, p.family()),
		ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.config.Log.With("service", p.service).Handler(), slog.LevelDebug),
	}}
	s.serving.Go(func() {
		if err := o.http.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Warn("a health check port has failed, it is opened anew", "service", p.service, "address", p.at, "error", err)
			_ = bounded.Close()
			o.dead.Store(true)
			s.stir()
		}
	})
	return o, nil
}

// problem says why a port is not there, in words that stay the same while that lasts.
func (s *Set) problem(p place, err error) model.Problem {
	why := "cannot be listened on: " + cause(err).Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && slices.Contains(s.config.Own, p.at.Port()):
		why = "is lace-agent's own (--healthz-bind-address or --metrics-bind-address): make the Service anew so that it is given another one, or give lace-agent another address"
	case errors.Is(err, syscall.EADDRINUSE):
		why = "is taken by another process of the node, or by another Service: stop it, or make the Service anew so that it is given another one"
	}
	return model.Problem{
		Kind: "Service", Object: p.service.String(), Field: "spec.healthCheckNodePort", Reason: Reason,
		Message: fmt.Sprintf("node %s cannot be asked for endpoints over %s: port %d %s; balancers take it for a node without any, and it is tried again every few seconds",
			s.config.Node, p.network(), p.at.Port(), why),
	}
}

// cause is an error without the address, which is said already and may be one of several.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
