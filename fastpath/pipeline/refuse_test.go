package pipeline

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestRefusal: who cannot be served is told at once, or dropped where a rule says so.
func TestRefusal(t *testing.T) {
	nothing := empty("vip", table.Refuse, table.Refuse)
	play(t, []scenario{
		{
			sentence: "a Service without endpoints refuses a pod",
			given:    nothing,
			steps:    []step{{sends: "client:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"}},
		},
		{
			sentence: "a Service without endpoints refuses the node itself",
			given:    nothing,
			steps:    []step{{sends: "node:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct node"}},
		},
		{
			sentence: "a Service without endpoints refuses an outside client",
			given:    nothing,
			steps:    []step{{sends: "outside:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct wire"}},
		},
		{
			sentence: "a port that the Service does not have is refused and never shown to the node's stack",
			over:     []uint8{packet.ProtocolTCP, packet.ProtocolUDP, packet.ProtocolSCTP},
			given:    serving("vip", "web:8080"),
			steps: []step{
				{sends: "client:4000 > vip:22", is: reason.UnknownPort, answer: true, via: "direct client", flags: syn},
				{sends: "node:4000 > vip:22", is: reason.UnknownPort, answer: true, via: "direct node", flags: syn},
				{sends: "outside:4000 > vip:22", is: reason.UnknownPort, answer: true, via: "direct wire", flags: syn},
			},
		},
		{
			sentence: "SCTP is refused by ICMP",
			over:     onlySCTP,
			given:    nothing,
			steps:    []step{{sends: "client:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"}},
		},
		{
			sentence: "a Service that gets endpoints serves the next packet of a client it refused before",
			given:    nothing,
			steps: []step{
				{sends: "client:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"},
				{then: serving("vip", "web:8080"), sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow,
					becomes: "client:4000 > web:8080", via: "direct web", ttl: -1},
			},
		},
		{
			sentence: "policy Local without an endpoint on this node drops an outside client, and serves one inside from the whole cluster",
			given: func(w *world) {
				w.serveApart("vip", []string{"remote:8080"}, nil)
				w.services["vip"].frontend.Outside.Empty = table.Drop
				w.publish()
			},
			steps: []step{
				{sends: "outside:4000 > vip:80", is: reason.NoLocalEndpoint},
				{sends: "client:4000 > vip:80", flags: syn, is: reason.NewFlow, becomes: "client:4000 > remote:8080", via: "direct wire", ttl: -1},
			},
		},
		{
			sentence: "a segment that opens nothing and belongs to no flow is reset",
			over:     onlyTCP,
			given:    serving("vip", "web:8080"),
			steps: []step{
				{sends: "client:4000 > vip:80", flags: ack, is: reason.NoFlow, answer: true, via: "direct client"},
				{sends: "client:4000 > vip:80", flags: synAck, is: reason.NoFlow, answer: true, via: "direct client"},
				{sends: "client:4000 > vip:80", flags: syn | packet.FlagFIN, is: reason.NoFlow, answer: true, via: "direct client"},
				{sends: "outside:4000 > vip:80", flags: fin, is: reason.NoFlow, answer: true, via: "direct wire"},
			},
		},
		{
			sentence: "a reset is never answered",
			over:     onlyTCP,
			given:    nothing,
			steps: []step{
				{sends: "client:4000 > vip:80", flags: rst, is: reason.StrayReset},
				{sends: "client:4000 > vip:81", flags: rst | ack, is: reason.StrayReset},
			},
		},
		{
			sentence: "answers are limited per second, and come again when a second is over",
			given: func(w *world) {
				w.contents.Settings.AnswersPerSecond = 2
				nothing(w)
			},
			steps: []step{
				{sends: "client:4000 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"},
				{sends: "client:4001 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"},
				{sends: "client:4002 > vip:80", is: reason.RateLimited},
				{then: later(time.Second), sends: "client:4002 > vip:80", is: reason.NoEndpoints, answer: true, via: "direct client"},
			},
		},
		{
			sentence: "a source that cannot be answered gets no answer",
			given: func(w *world) {
				w.contents.Addresses = append(w.contents.Addresses, table.Address{Addr: multicast(w.family), Port: portIDs["client"]})
				nothing(w)
			},
			steps: []step{{
				sends: "client:4000 > vip:80", is: reason.Malformed,
				with: func(f *frame.Frame) { *f = f.From(multicastSource(*f)) },
			}},
		},
	})
}
