package pipeline

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// ownNodePort is a node port whose alias is the VIP, at the same port.
func ownNodePort(inside ...string) func(*world) {
	return func(w *world) {
		nodePort(backends(inside...), nil)(w)
		w.serveApart("vip", backends(inside...), nil)
		f := &w.services["vip"].frontend
		f.Port, f.Flags, f.AliasOf = 30080, table.Narrow, w.services["node"].frontend.ID
		w.publish()
	}
}

// TestAliasOfANodePort: the alias of the node's own address is there for the node alone.
func TestAliasOfANodePort(t *testing.T) {
	play(t, []scenario{
		{
			sentence: "the node reaches a pod, and keeps its address",
			over:     all,
			given:    ownNodePort("web:8080"),
			steps: []step{
				{sends: "node:4000 > vip:30080", is: reason.NewFlow, becomes: "node:4000 > web:8080", via: "direct web", ttl: 0},
				{sends: "web:8080 > node:4000", flags: synAck, is: reason.Reply, becomes: "vip:30080 > node:4000", via: "direct node", ttl: 0},
			},
		},
		{
			sentence: "the node reaches itself, and sees the alias",
			over:     []uint8{packet.ProtocolTCP, packet.ProtocolUDP},
			given:    ownNodePort("node:8080"),
			steps: []step{
				{sends: "node:4000 > vip:30080", is: reason.NewFlow, becomes: "vip:4000 > node:8080", via: "direct node", ttl: 0},
			},
		},
		{
			sentence: "a pod that calls the alias is not served",
			over:     all,
			given:    ownNodePort("web:8080"),
			steps:    []step{{sends: "client:4000 > vip:30080", is: reason.NotClaimed, becomes: "client:4000 > vip:30080", via: "stack client"}},
		},
		{
			sentence: "nor is a client outside",
			over:     all,
			given:    ownNodePort("web:8080"),
			steps:    []step{{sends: "outside:4000 > vip:30080", is: reason.NotClaimed, becomes: "outside:4000 > vip:30080", via: "stack wire"}},
		},
	})
}
