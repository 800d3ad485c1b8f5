package adminserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// TestNodePortsThatNobodyAnswersAreShown: of the families that have no address for them, and
// of Services that ask for one.
func TestNodePortsThatNobodyAnswersAreShown(t *testing.T) {
	missing := func(family string) api.Frontend {
		return api.Frontend{Kind: "NodePort", Port: 30080, Why: "no " + family + " address of this node is to answer it"}
	}
	for _, c := range []struct {
		sentence   string
		nodePort   uint16
		unanswered []int
		want       []api.Frontend
	}{
		{"one family", 30080, []int{4}, []api.Frontend{missing("IPv4")}},
		{"both", 30080, []int{4, 6}, []api.Frontend{missing("IPv4"), missing("IPv6")}},
		{"all are answered", 30080, nil, nil},
		{"a Service without node ports misses none", 0, []int{4, 6}, nil},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			p := newPlayed(t)
			p.state.Unanswered = c.unanswered
			p.state.Services[0].Ports[0].NodePort = c.nodePort
			list, err := ask(t, p).Services(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, list.Items[0].Ports[0].Frontends[2:], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("behind its ClusterIPs (-want +got):\n%s", diff)
			}
			if of := list.Items[1].Ports[0].Frontends; len(of) != 1 {
				t.Errorf("another Service has %v", of)
			}
		})
	}
}
