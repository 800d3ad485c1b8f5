package adminserver

import (
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// Where the node's own stack routes packets of Services, a note says what keeps it from
// forwarding one, or why it does not get one.
func TestExplainNotesTheWay(t *testing.T) {
	const (
		off   = "net.ipv4.ip_forward is 0: the kernel does not forward IPv4, sysctl -w net.ipv4.ip_forward=1"
		other = "net.ipv6.conf.all.forwarding is 0: the kernel does not forward IPv6"
	)
	cases := []struct {
		name, from, only string
		delivery         model.Delivery
		says, never      string
	}{
		{"the stack does not forward this family", "shopper", "10.244.1.5", model.Stack, off + " (ForwardingOff)", other},
		{"what Lace forwards itself does not depend on it", "shopper", "10.244.1.5", model.Direct, "", off},
		{"a backend on the node itself is not forwarded", "shopper", "172.30.0.11", model.Stack, "", off},
		{"the node's own packets", "host", "10.244.1.5", model.Stack, "past the node's own stack: what the node itself sends", off},
		{"the node's own packets where nothing goes by its stack", "host", "10.244.1.5", model.Direct, "", "past the node's"},
		{"a pod that is its own backend", "web-1", "10.244.1.5", model.Stack, "past the node's own stack: it would not take this source", off},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			p := newPlayed(t)
			p.state.Problems = append(p.state.Problems,
				model.Problem{Kind: "Node", Object: "n1", Reason: forwardingOff, Message: off},
				model.Problem{Kind: "Node", Object: "n1", Reason: forwardingOff, Message: other})
			p.contents.Backends[0].Addr = key(one.only)
			p.contents.Backends = p.contents.Backends[:1]
			p.contents.BackendIDs = []uint32{1}
			p.contents.Frontends[0].Inside.Count, p.contents.Frontends[0].Outside.Count = 1, 1
			for i := range p.state.Attachments.Ports {
				q := &p.state.Attachments.Ports[i]
				if q.Kind == model.PortHost || one.delivery == model.Direct {
					continue
				}
				q.Delivery = one.delivery
				p.contents.Ports[i].Flags |= table.PortStack
			}
			got, err := ask(t, p).Explain(t.Context(), one.from, "10.96.0.10:80/tcp")
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(got.Notes, "\n")
			if got.Verdict != "forward" || !strings.Contains(notes, one.says) || strings.Contains(notes, one.never) {
				t.Errorf("%s, notes %q; want %q, never %q", got.Verdict, notes, one.says, one.never)
			}
		})
	}
}
