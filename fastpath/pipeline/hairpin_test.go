package pipeline

import (
	"testing"

	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestOwnBackendElsewhere: a pod of another node that calls an external address here, and is
// its own backend. Its answer to that address would go wherever its node's routes lead.
func TestOwnBackendElsewhere(t *testing.T) {
	play(t, []scenario{
		{
			sentence: "another node's pod that is its own backend is seen as this node, whatever address it called",
			over:     all,
			given: func(w *world) {
				w.serve("vip", "remote:8080")
				w.services["vip"].frontend.Flags |= table.Narrow
				w.publish()
			},
			steps: []step{
				{sends: "remote:4000 > vip:80", is: reason.NewFlow, becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			},
		},
	})
}
