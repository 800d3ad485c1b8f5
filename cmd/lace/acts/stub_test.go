package acts

import (
	"context"
	"net/netip"
	"time"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// stub is a stage without anything behind it, on which all goes well; a test spoils one
// thing.
type stub struct {
	notReady  error
	answer    traffic.Answer // to every Dial
	explained api.Explanation
	burst     func(from string, b traffic.Burst, used []string) traffic.Tally
	attempts  func() []traffic.Answer
	progress  traffic.Progress
	setErr    error

	used     []string // pods of web that get new connections
	problems []api.Problem
	changes  int
	killed   []Process
	started  []Process
	turns    int
}

var pods = []string{"web-1", "web-2", "web-3"}

func newStub() *stub {
	return &stub{
		used:   pods,
		answer: traffic.Answer{Outcome: traffic.OK, Server: "web-1"},
		explained: api.Explanation{Verdict: "forward", Reason: "new-flow", Backend: "10.244.1.12:8080",
			Steps: make([]api.Step, 4), Live: []api.Flow{{Pod: "default/web-2", State: "established"}}},
		burst:    evenly,
		progress: traffic.Progress{Flows: 1, Servers: map[string]int{"web-2": 1}, Gap: 12 * time.Millisecond},
	}
}

// evenly spreads a burst over those that are used.
func evenly(_ string, b traffic.Burst, used []string) (t traffic.Tally) {
	for i := range b.Count {
		t.Add(traffic.Answer{Outcome: traffic.OK, Server: used[i%len(used)]})
	}
	return t
}

func (s *stub) Label() string               { return "a stub" }
func (s *stub) Simulated() bool             { return true }
func (s *stub) Manifests() string           { return "/somewhere" }
func (s *stub) Tells() []string             { return nil }
func (s *stub) Ready(context.Context) error { return s.notReady }

func (s *stub) Status(context.Context) ([]api.Status, error) {
	return []api.Status{{Node: "n1", Ready: true, Generation: api.Generation{Published: 3, InUse: 3, Programming: 0.012}}}, nil
}

func (s *stub) Backends(context.Context) ([]api.Backend, error) { return nil, nil }
func (s *stub) Drops(context.Context) ([]api.Drop, error)       { return nil, nil }
func (s *stub) Problems(context.Context) ([]api.Problem, error) { return s.problems, nil }

func (s *stub) Explain(context.Context, string, string) (api.Explanation, error) {
	return s.explained, nil
}

func (s *stub) Clients() []Client { return []Client{{"shopper", "a pod"}, {"n1", "the node"}} }

func (s *stub) Dial(context.Context, string, traffic.Request) (traffic.Answer, error) {
	return s.answer, nil
}

func (s *stub) Burst(_ context.Context, from string, b traffic.Burst) (traffic.Tally, error) {
	return s.burst(from, b, s.used), nil
}

func (s *stub) StartAttempts(context.Context, string, traffic.Burst) (Attempts, error) {
	return lateAttempts{s}, nil
}

// lateAttempts asks for the answers when they are stopped: they depend on when things
// were changed.
type lateAttempts struct{ s *stub }

func (a lateAttempts) Stop(context.Context) ([]traffic.Answer, error) { return a.s.attempts(), nil }

func (s *stub) StartStream(context.Context, string, traffic.Stream) (Stream, error) {
	return stubStream{s}, nil
}

func (s *stub) StartFlood(context.Context, string, traffic.Flood) (Flood, error) {
	return stubFlood{}, nil
}

type stubFlood struct{}

func (stubFlood) Stop(context.Context) (uint64, error) { return 5000, nil }

type stubStream struct{ s *stub }

func (t stubStream) Progress(context.Context) (traffic.Progress, error) {
	t.s.turns += 100
	p := t.s.progress
	p.Turns = t.s.turns
	return p, nil
}

func (t stubStream) Stop(ctx context.Context) (traffic.Progress, error) { return t.Progress(ctx) }

func (s *stub) Web() (out []manifests.Endpoint) {
	for i, name := range pods {
		out = append(out, manifests.Endpoint{Pod: name, Addr4: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})})
	}
	return out
}

// SetWeb makes new connections go to the ready ones, or else to those that drain.
func (s *stub) SetWeb(_ context.Context, endpoints []manifests.Endpoint) (Programmed, error) {
	s.changes++
	s.used = nil
	for _, state := range []manifests.State{manifests.Ready, manifests.Draining} {
		for _, e := range endpoints {
			if e.State == state {
				s.used = append(s.used, e.Pod)
			}
		}
		if len(s.used) > 0 {
			break
		}
	}
	now := time.Now()
	return Programmed{now, now.Add(time.Millisecond)}, s.setErr
}

func (s *stub) Kill(_ context.Context, p Process) error {
	s.killed = append(s.killed, p)
	return nil
}

func (s *stub) Start(_ context.Context, p Process) error {
	s.started = append(s.started, p)
	return nil
}
