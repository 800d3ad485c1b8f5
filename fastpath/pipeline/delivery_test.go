package pipeline

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// TestDelivery is every kind of client with every kind of backend: how the first packet
// gets to the backend, and how the answer comes back.
func TestDelivery(t *testing.T) {
	cases := []struct {
		sentence        string
		client, backend string
		toBackend       step // what the backend gets
		answer          step // what the backend sends, and what the client gets
	}{
		{
			"a pod and a pod on the same node: routed, addresses kept",
			"client:4000", "web:8080",
			step{becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
			step{sends: "web:8080 > client:4000", via: "direct client", ttl: -1},
		},
		{
			"a pod that is its own backend sees the VIP as its client",
			"web:4000", "web:8080",
			step{becomes: "vip:4000 > web:8080", via: "direct web", ttl: -1},
			step{sends: "web:8080 > vip:4000", via: "direct web", ttl: -1},
		},
		{
			"a pod and a backend in the node's own stack: given to the stack on the pod's device, reply caught on its way out",
			"client:4000", "node:8080",
			step{becomes: "client:4000 > node:8080", via: "stack client"},
			step{sends: "node:8080 > client:4000", at: "out client", via: "direct client"},
		},
		{
			"a pod and a pod on another node: address kept",
			"client:4000", "remote:8080",
			step{becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1},
			step{sends: "remote:8080 > client:4000", via: "direct client", ttl: -1},
		},
		{
			"the node and a pod on it: not routed",
			"node:4000", "web:8080",
			step{becomes: "node:4000 > web:8080", via: "direct web"},
			step{sends: "web:8080 > node:4000", via: "direct node"},
		},
		{
			"the node and a backend in its own stack: the source is the VIP, since a kernel refuses its own address from outside",
			"node:4000", "node:8080",
			step{becomes: "vip:4000 > node:8080", via: "direct node"},
			step{sends: "node:8080 > vip:4000", via: "direct node"},
		},
		{
			"the node and a pod on another node",
			"node:4000", "remote:8080",
			step{becomes: "node:4000 > remote:8080", via: "direct wire"},
			step{sends: "remote:8080 > node:4000", via: "direct node"},
		},
		{
			"an outside client and a pod on the node: the client's address is kept",
			"outside:4000", "web:8080",
			step{becomes: "outside:4000 > web:8080", via: "direct web", ttl: -1},
			step{sends: "web:8080 > outside:4000", via: "direct wire", ttl: -1},
		},
		{
			"an outside client and a backend in the node's own stack: given to the stack on the uplink",
			"outside:4000", "node:8080",
			step{becomes: "outside:4000 > node:8080", via: "stack wire"},
			step{sends: "node:8080 > outside:4000", at: "out wire", via: "direct wire"},
		},
		{
			"an outside client and a pod on another node: the source becomes the node's, so that the reply comes back here",
			"outside:4000", "remote:8080",
			step{becomes: "node:* > remote:8080", via: "direct wire", ttl: -1},
			step{via: "direct wire", ttl: -1}, // to the port that was chosen; filled in below
		},
	}
	all := []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP}
	var scenarios []scenario
	for _, c := range cases {
		first, answer := c.toBackend, c.answer
		first.sends, first.is = c.client+" > vip:80", reason.NewFlow
		answer.becomes, answer.is, answer.flags = "vip:80 > "+c.client, reason.Reply, synAck
		given := serving("vip", c.backend)
		if answer.sends == "" {
			given = func(w *world) {
				// A range of one port makes the choice known.
				w.contents.Settings.SourcePortFirst, w.contents.Settings.SourcePortLast = 61234, 61234
				w.serve("vip", c.backend)
			}
			answer.sends = c.backend + " > node:61234"
		}
		again := first
		again.is = reason.Established
		scenarios = append(scenarios, scenario{sentence: c.sentence, over: all, given: given, steps: []step{first, answer, again}})
	}
	play(t, scenarios)
}
