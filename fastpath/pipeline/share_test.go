package pipeline

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// TestShares: a port that has its share of the flow table is refused further flows by name,
// keeps those that it has, and does not stand in the way of others.
func TestShares(t *testing.T) {
	opensFrom := func(name, port string) step {
		return step{sends: name + ":" + port + " > vip:80", flags: syn, is: reason.NewFlow,
			becomes: name + ":" + port + " > web:8080", via: "direct web", ttl: -1}
	}
	play(t, []scenario{
		{
			sentence: "a pod that has its share opens nothing more, its flows go on, and another pod's begin",
			given:    shared,
			steps: steps(opens,
				step{then: established, sends: "client:4005 > vip:80", flags: syn, is: reason.FlowShareFull},
				speaks, answers, opensFrom("other", "4005"), opensFrom("other", "4006")),
		},
		{
			sentence: "a pod whose share is used up by closed connections opens new ones in their place",
			over:     onlyTCP,
			given:    shared,
			steps: steps(step{then: ended, sends: "client:4005 > vip:80", flags: syn, is: reason.FlowShareFull},
				step{then: later(2 * time.Second)}, opensFrom("client", "4005"), opensFrom("client", "4006")),
		},
	})
}

// shared is a node whose ports share a small flow table.
func shared(w *world) {
	flows, err := conntrack.New(128)
	if err != nil {
		w.t.Fatal(err)
	}
	flows.SetHalfOpenMax(flows.Cap())
	flows.SharePorts()
	w.flows, w.pipeline = flows, New(Config{Flows: flows})
	w.serve("vip", "web:8080")
}

// established uses up client's share with flows that are in use.
func established(w *world) { w.useUp(conntrack.StateSeen | conntrack.StateSYN | conntrack.StateACK) }

// ended uses it up with connections that both ends have closed.
func ended(w *world) {
	w.useUp(conntrack.StateSeen | conntrack.StateSYN | conntrack.StateACK | conntrack.StateFIN)
}

func (w *world) useUp(state conntrack.State) {
	for port := uint16(1); port < 1000; port++ {
		t := nat.Translation{
			Client: conntrack.Tuple{Src: packet.Addr4([4]byte{192, 0, 2, 1}), SrcPort: port,
				Dst: packet.Addr4([4]byte{198, 51, 100, 1}), DstPort: 53, Protocol: w.protocol},
			Backend: packet.Addr4([4]byte{198, 51, 100, 2}), BackendPort: port,
			Source: packet.Addr4([4]byte{192, 0, 2, 1}), SourcePort: port,
		}
		var fwd, rev conntrack.Flow
		t.Make(&fwd, &rev)
		fwd.State, rev.State, fwd.In = state, state, portIDs["client"]
		if w.flows.Insert(&fwd, &rev, conntrack.Tick(int64(w.clock))) == conntrack.ShareFull {
			return
		}
	}
	w.t.Fatal("there is no end to the share")
}
