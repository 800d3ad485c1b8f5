package acts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// The picture shows label, backends with shares against what is expected, drops, flows,
// and where to edit; a simulation says so.
func TestRender(t *testing.T) {
	v := View{
		Label: "packets in memory", Simulated: true, Manifests: "/somewhere/manifests", Tells: []string{"another terminal: ask"}, PerSecond: 1234,
		Backends: []api.Backend{
			{Service: "web", Port: "http", Protocol: "TCP", Pod: "default/web-1", Node: "n1", Address: "10.244.1.11", Used: true, Flows: 7},
			{Service: "web", Port: "http", Protocol: "TCP", Pod: "default/web-2", Node: "n1", Address: "10.244.1.12", Used: true},
			{Service: "web", Port: "http", Protocol: "TCP", Pod: "default/web-3", Node: "n2", Address: "10.244.2.11", Why: "not-ready"},
			{Service: "dns", Port: "dns", Protocol: "UDP", Pod: "default/dns-1", Node: "n2", Address: "10.244.2.12", Used: true},
		},
		Tally: traffic.Tally{Attempts: 100, Outcomes: map[traffic.Outcome]int{traffic.OK: 99, traffic.Refused: 1},
			Servers: map[string]int{"web-1": 66, "web-2": 33}},
		Drops: []api.Drop{{Reason: "no-endpoints", Packets: 3}, {Reason: "icmp"}},
		Error: errors.New("the agent is gone"),
	}
	v.Status.Generation = api.Generation{InUse: 9, Programming: 0.012}
	v.Status.Fastpath.Flows, v.Status.Fastpath.FlowsMax = 12, 65536
	got := v.Render(screen.Paint{})
	for _, want := range []string{
		"SIMULATED · lace demo · packets in memory · generation 9 · programmed in 12 ms",
		"web-1    n1    10.244.1.11      7      50.0%  66.7%     66  ███████████████████████████\n",
		"web-3    n2    10.244.2.11      0  not-ready   0.0%      0\n",
		"dns-1    n2    10.244.2.12      0     100.0%      -      -  -\n",
		"100 in the last second, 99 ok, 1 refused",
		"1234/s through Go", "12 of 65536", "no-endpoints 3\n", "the agent is gone",
		"edit and save: /somewhere/manifests   [q] quit",
		"another terminal: ask",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Watch shows pictures until it is told to stop.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	Watch(ctx, newStub(), func(v View) {
		if v.Tally.Attempts != 2*watchConnections || v.Status.Generation.InUse != 3 {
			t.Errorf("picture %d: %+v", n, v)
		}
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 {
		t.Errorf("%d pictures, want 3", n)
	}
}
