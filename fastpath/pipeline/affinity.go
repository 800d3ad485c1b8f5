package pipeline

import (
	"slices"

	"lace-cni.io/lace/fastpath/affinity"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/table"
)

// How a backend was come by.
const (
	byChance = "at random"
	asBefore = "as before"
)

// pick chooses one of the usable backends: the one that the client was given before, if the
// frontend remembers its clients and that one is still among them, else any of them.
func (pl *Pipeline) pick(frontend *table.Frontend, ids []uint32) (id uint32, how string) {
	if frontend.Affinity == 0 {
		return nat.Pick(pl.rand, ids), byChance
	}
	if pl.clients == nil {
		pl.visit.trace.note("affinity", "a client that the fast path remembers keeps its backend, as long as that is usable; this answer does not know who is remembered")
		return nat.Pick(pl.rand, ids), byChance
	}
	return pl.remembered(frontend, ids)
}

func (pl *Pipeline) remembered(frontend *table.Frontend, ids []uint32) (id uint32, how string) {
	v := &pl.visit
	pl.client = affinity.Key{Client: v.packet.Src, Session: frontend.Session, Network: v.in.Network}
	k, timeout := &pl.client, affinityTicks(frontend.Affinity)
	found := pl.clients.Find(k, v.tick, timeout)
	wanted := found
	if !slices.Contains(ids, found) {
		wanted = nat.Pick(pl.rand, ids)
	}
	holds := pl.clients.Remember(k, wanted, found, v.tick, timeout)
	if !slices.Contains(ids, holds) {
		// Another worker gave it one of other tables, or of another policy.
		pl.clients.Remember(k, wanted, holds, v.tick, timeout)
		holds = wanted
	}
	if holds == found {
		return holds, asBefore
	}
	v.trace.note("affinity", "the client is remembered from now on")
	return holds, byChance
}

// affinityTicks is the time for which a client is remembered, in ticks of the flow table;
// never less than was asked for.
func affinityTicks(seconds uint32) uint32 { return conntrack.Tick(int64(seconds)*second) + 1 }
