package acts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// The picture shows label, backends with shares against what is expected, drops, flows,
// and where to edit; a simulation says so.
func TestRender(t *testing.T) {
	v := View{
		Label: "packets in memory", Family: 4, Simulated: true, Manifests: "/somewhere/manifests", Tells: []string{"another terminal: ask"}, PerSecond: 1234,
		Backends: []api.Backend{
			{Service: "web", Port: "http", Protocol: "TCP", Pod: "default/web-1", Node: "n1", Address: "10.244.1.11", Used: true, Flows: 7},
			{Service: "web", Port: "http", Protocol: "TCP", Pod: "default/web-2", Node: "n1", Address: "10.244.1.12", Used: true},
			{Service: "web", Port: "http", Protocol: "TCP", Pod: "default/web-3", Node: "n2", Address: "10.244.2.11", Why: "not-ready"},
			{Service: "dns", Port: "dns", Protocol: "UDP", Pod: "default/dns-1", Node: "n2", Address: "10.244.2.12", Used: true},
		},
		Tally: traffic.Tally{Attempts: 100, Outcomes: map[traffic.Outcome]int{traffic.OK: 99, traffic.Refused: 1},
			Servers: map[string]int{"web-1": 66, "web-2": 33}},
		Drops:    []api.Drop{{Reason: "no-endpoints", Packets: 3}, {Reason: "icmp"}},
		Problems: []api.Problem{{Kind: "Service", Object: "default/web", Field: "spec.ports[0]", Message: "first line\n" + strings.Repeat("long ", 40)}, {}},
		Error:    errors.New("the agent is gone"),
	}
	v.Status.Generation = api.Generation{InUse: 9, Programming: 0.012}
	v.Status.Fastpath.Flows, v.Status.Fastpath.Open, v.Status.Fastpath.FlowsMax = 9263, 12, 65536
	v.Status.Fastpath.Message = "lace-fastpath is not running"
	got := v.Render(screen.Paint{})
	for _, want := range []string{
		"SIMULATED lace demo · packets in memory · generation 9 · programmed in 12 ms",
		"web-1    n1    10.244.1.11      7      50.0%  66.7%     66  ███████████████████████████\n",
		"web-3    n2    10.244.2.11      0  not-ready   0.0%      0\n",
		"dns-1    n2    10.244.2.12      0     100.0%      -      -  -\n",
		"100 over IPv4 ended in the last second, 99 ok, 1 refused", "SIMULATED IPv4\n", "2 · default/web spec.ports[0] first line long long",
		"1234/s through Go", "12 open, 9263 registered, room for 65536", "no-endpoints 3\n", "the agent is gone", "lace-fastpath is not running\n",
		"edit and save: /somewhere/manifests   [q] quit",
		"another terminal: ask",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if line != "\n" && !strings.HasPrefix(line, "SIMULATED ") {
			t.Errorf("a line of the simulation does not say so: %q", line)
		}
	}
	v.Simulated, v.Problems = false, nil
	if got := v.Render(screen.Paint{}); strings.Contains(got, "SIMULATED") || !strings.Contains(got, "PROBLEMS    none\n") {
		t.Errorf("a real picture without problems:\n%s", got)
	}
}

// Nothing that an agent says makes a line of the picture, or reaches the terminal.
func TestRenderIsPlain(t *testing.T) {
	const forged = "\x1b[2J\nforged"
	v := View{
		Label: "l", Family: 4, Manifests: "/m" + forged, Tells: []string{"t" + forged},
		Backends: []api.Backend{{Service: "web" + forged, Port: "http", Pod: "p" + forged, Node: "n" + forged, Address: "10.244.1.11"}},
		Drops:    []api.Drop{{Reason: "r" + forged, Packets: 3}},
		Problems: []api.Problem{{Object: "o" + forged, Field: "f" + forged, Message: "m" + forged}},
		Error:    errors.New("e" + forged),
	}
	v.Status.Fastpath.Message = "down" + forged
	for line := range strings.Lines(v.Render(screen.Paint{})) {
		if strings.HasPrefix(line, "forged") || strings.Contains(line, "\x1b") {
			t.Errorf("an agent's text became a line, or an order to the terminal: %q", line)
		}
	}
}

// Watch shows pictures until it is told to stop.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	Watch(ctx, newStub(), func(v View) {
		if v.Family != 4 || v.Tally.Outcomes[traffic.OK] == 0 || v.Tally.Outcomes[traffic.OK] != v.Tally.Attempts || v.Status.Generation.InUse != 3 {
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

// Pictures go on while no connection comes to an end, and count those that do in the end.
func TestWatchDoesNotWaitForConnections(t *testing.T) {
	s := newStub()
	stuck := make(chan struct{})
	s.burst = func(string, traffic.Burst, []string) (tally traffic.Tally) {
		<-stuck
		tally.Add(traffic.Answer{Outcome: traffic.Timeout})
		return tally
	}
	s.problems = []api.Problem{{Object: "default/web"}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var seen []int
	Watch(ctx, s, func(v View) {
		if len(v.Problems) != 1 {
			t.Errorf("%d problems, want that of the stage", len(v.Problems))
		}
		if seen = append(seen, v.Tally.Outcomes[traffic.Timeout]); len(seen) == 2 {
			close(stuck)
		}
		if len(seen) > 2 && seen[len(seen)-1] > 0 {
			cancel()
		}
	})
	if len(seen) < 3 || seen[0]+seen[1] != 0 || seen[len(seen)-1] == 0 {
		t.Errorf("timeouts in each picture: %v; want pictures without any, then some", seen)
	}
}
