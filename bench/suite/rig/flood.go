package rig

import (
	"context"
	"net/netip"
	"time"

	"lace-cni.io/lace/bench/load"
	"lace-cni.io/lace/bench/suite/rings"
	"lace-cni.io/lace/fastpath/counter"
)

// Others are a pod and what it calls, a service with one backend, both on the first node: neither
// is the pod that floods, nor what that calls.
func (r *Rig) Others() (client *load.Space, to netip.AddrPort) {
	if r.Mode.Kind == Direct {
		return r.spaces[otherPod], netip.AddrPortFrom(pods[alonePods[0]], BackendPort)
	}
	return r.spaces[otherPod], netip.AddrPortFrom(aloneVIP, FrontendPort)
}

// Flooded is what the flooding pod calls: a service whose backend is on the other node.
func (r *Rig) Flooded() netip.AddrPort { return r.Target(Across) }

// FloodEnd is where a flood ends that the first node has carried: the far end of its wire,
// before the bridge. No pod and no other node has work with it.
func (r *Rig) FloodEnd() (space *load.Space, device string) { return r.spaces[wireSpace], "n1" }

// calming is how long limits on new flows may stay in force after a flood, telling how long it
// takes until Lace says whether they are, and asking how long others ask in between.
const (
	calming = 3 * time.Second
	telling = 1100 * time.Millisecond
	asking  = 50 * time.Millisecond
)

// Calm lets others open flows until Lace no longer limits new ones for a flood that is over:
// what is measured next would be held back. It returns the limit that still stood after
// calming; 0: none, as in modes that have no such limits. A limit is eased by workers that have something
// to do, and stands where it is while they have nothing.
func (r *Rig) Calm(ctx context.Context) (limit uint64, err error) {
	if r.Mode.Kind != Lace {
		return 0, nil
	}
	c, err := counter.Open(r.lab.Node("n1").StatePath(rings.CounterFile))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	client, to := r.Others()
	for begun := time.Now(); ; {
		limit = c.Totals().Gauges[counter.PuntLimit]
		if passed := time.Since(begun); passed > calming || limit == 0 && passed > telling {
			return limit, nil
		}
		// Whether they are answered does not matter here.
		if _, err := load.FirstPackets(ctx, client, to, asking); ctx.Err() != nil {
			return limit, err
		}
	}
}
