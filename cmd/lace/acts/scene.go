package acts

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// scene is a stage while one act is on it. It puts back what the act changed.
type scene struct {
	Stage
	family  int
	changed bool // endpoints of web
}

// The Service web as the manifests have it.
var (
	webAddr4 = netip.MustParseAddr("10.96.0.10")
	webAddr6 = netip.MustParseAddr("fd00:10:96::10")
)

const webPort = 80

// web is where clients call the Service.
func (s *scene) web() netip.AddrPort {
	if s.family == 6 {
		return netip.AddrPortFrom(webAddr6, webPort)
	}
	return netip.AddrPortFrom(webAddr4, webPort)
}

// call is a request to web.
func (s *scene) call(network string) traffic.Request {
	return traffic.Request{Network: network, To: s.web(), Bytes: 64}
}

// setWeb changes the endpoints until the act is over.
func (s *scene) setWeb(ctx context.Context, endpoints []manifests.Endpoint) (Programmed, error) {
	s.changed = true
	return s.SetWeb(ctx, endpoints)
}

// restore puts the endpoints back, bounded by a time of its own.
func (s *scene) restore(ctx context.Context) error {
	if !s.changed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := s.SetWeb(ctx, s.Web()); err != nil {
		return fmt.Errorf("put the endpoints back: %w", err)
	}
	return nil
}

// with gives each endpoint whose name is listed a state, and the others stay as they are.
func with(endpoints []manifests.Endpoint, state manifests.State, names ...string) []manifests.Endpoint {
	out := append([]manifests.Endpoint(nil), endpoints...)
	for i := range out {
		for _, n := range names {
			if out[i].Pod == n {
				out[i].State = state
			}
		}
	}
	return out
}

// until waits for a condition, looking every few milliseconds.
func until(ctx context.Context, patience time.Duration, what string, done func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s within %s", what, patience)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause lets traffic run for a while.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// milliseconds writes a duration the way people read it.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
