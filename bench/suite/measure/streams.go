package measure

import (
	"fmt"
	"net/netip"
	"time"

	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/stats"
)

// patience for a single answer.
const patience = time.Second

// streams measures n TCP streams to the service.
func streams(n int) func(*bench) (Values, error) {
	return func(b *bench) (Values, error) { return b.stream(b.Target(b.path), n) }
}

func directStream(b *bench) (Values, error) { return b.stream(b.Pod(b.path), 1) }

func (b *bench) stream(to netip.AddrPort, n int) (Values, error) {
	s, err := load.Stream(b.ctx, b.Client(b.path), load.Discard(to), n, b.times.Warm, b.times.For)
	if err != nil {
		return nil, err
	}
	return Values{
		"gbps": s.Rate() / 1e9, "retransmits": s.PerGiB(s.Retransmits),
		"reordered": s.PerGiB(s.Reordered), "duplicates": s.PerGiB(s.Duplicates),
	}, nil
}

// connectClients at a time: more than there are processors, so that none idles.
const connectClients = 4

func connections(b *bench) (Values, error) {
	e, err := load.Connections(b.ctx, b.Client(b.path), b.Target(b.path), connectClients, b.times.For)
	return exchanged(e, err)
}

func roundTrips(b *bench) (Values, error) {
	if _, err := load.RoundTrips(b.ctx, b.Client(b.path), b.Target(b.path), b.times.Warm/4); err != nil {
		return nil, err
	}
	e, err := load.RoundTrips(b.ctx, b.Client(b.path), b.Target(b.path), b.times.For)
	return exchanged(e, err)
}

func firstPackets(b *bench) (Values, error) {
	e, err := load.FirstPackets(b.ctx, b.Client(b.path), b.Target(b.path), b.times.For)
	return exchanged(e, err)
}

// exchanged is an error when more than one in a hundred attempts failed: the times of the
// others would say little.
func exchanged(e load.Exchanged, err error) (Values, error) {
	if err != nil {
		return nil, err
	}
	if n := len(e.Times) + e.Failed; e.Failed*100 > n {
		return nil, fmt.Errorf("%d of %d attempts failed, the first for: %w", e.Failed, n, e.First)
	}
	times := micros(e.Times)
	return Values{
		"rate": e.Rate(), "failed": float64(e.Failed),
		"p50": stats.Quantile(times, 0.5), "p99": stats.Quantile(times, 0.99),
	}, nil
}

func micros(times []time.Duration) []float64 {
	out := make([]float64, len(times))
	for i, t := range times {
		out[i] = float64(t) / float64(time.Microsecond)
	}
	return out
}
