package simulated

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/acts"
	"lace-cni.io/lace/fastpath/packet/frame"
)

// floodEvery and floodBatch make the pace, which a simulation in one process can bear
// beside everything else.
const (
	floodEvery = 5 * time.Millisecond
	floodBatch = 50
)

type flood struct {
	cancel context.CancelFunc
	done   chan struct{}
	sent   uint64
}

// StartFlood sends SYNs from every port of a host, and takes no answer.
func (s *Stage) StartFlood(_ context.Context, from string, f traffic.Flood) (acts.Flood, error) {
	m, err := s.client(from)
	if err != nil {
		return nil, err
	}
	if f.Network != "tcp" {
		return nil, fmt.Errorf("flood over %q: the simulation knows tcp", f.Network)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out := &flood{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(out.done)
		for port := uint16(1024); ctx.Err() == nil; {
			for range floodBatch {
				port = max(port+1, 1024)
				src := netip.AddrPortFrom(m.Addr4, port)
				s.network.send(m.Host, frame.TCP(src.String(), f.To.String(), 2, "").Bytes())
				out.sent++
			}
			select {
			case <-time.After(floodEvery):
			case <-ctx.Done():
			}
		}
	}()
	return out, nil
}

// Stop implements acts.Flood.
func (f *flood) Stop(context.Context) (uint64, error) {
	f.cancel()
	<-f.done
	return f.sent, nil
}
