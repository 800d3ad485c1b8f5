package pipeline

import (
	"testing"

	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestPolicyChangesBack: whoever Local has dropped is served as soon as the policy is Cluster,
// with the same packet, and is dropped again when it is not; what began meanwhile goes on.
func TestPolicyChangesBack(t *testing.T) {
	local := func(w *world) {
		w.serveApart("vip", backends("remote:8080"), nil)
		w.services["vip"].frontend.Outside.Empty = table.Drop
		w.publish()
	}
	first := "outside:4000 > vip:80"
	play(t, []scenario{{
		sentence: "a change to Cluster serves who was dropped, and one back to Local drops new ones alone",
		over:     onlyTCP,
		given:    local,
		steps: []step{
			{sends: first, flags: syn, is: reason.NoLocalEndpoint},
			{then: serving("vip", "remote:8080"), sends: first, flags: syn, is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			{then: local, sends: "outside:4001 > vip:80", flags: syn, is: reason.NoLocalEndpoint},
			{sends: first, flags: ack, is: reason.Established, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
		},
	}})
}
