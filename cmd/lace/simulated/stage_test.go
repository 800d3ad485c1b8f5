package simulated

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/cmd/lace/acts"
)

func newStage(t *testing.T) *Stage {
	t.Helper()
	t.Setenv("TMPDIR", "/tmp") // socket names are limited in length
	s, err := Start(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 10 s", what)
		}
	}
}

var web = netip.MustParseAddrPort("10.96.0.10:80")

// While the fast path is dead, packets of registered flows are dropped in both directions,
// not leaked to hosts that would reset them; new connections get no answer; packets that
// are for no Service arrive. Afterwards everything goes on.
func TestClaimsOutliveTheFastPath(t *testing.T) {
	s := newStage(t)
	for _, from := range []string{"shopper", nodeName, "outside"} {
		stream, err := s.StartStream(t.Context(), from, traffic.Stream{
			Request: traffic.Request{Network: "tcp", To: web, Timeout: 20 * time.Second}, Count: 4})
		if err != nil {
			t.Fatal(err)
		}
		progress := func() traffic.Progress {
			p, _ := stream.Progress(t.Context())
			return p
		}
		within(t, "100 turns", func() bool { return progress().Turns >= 100 })
		if err := s.Kill(t.Context(), acts.Fastpath); err != nil {
			t.Fatal(err)
		}
		within(t, "a gap of 300 ms", func() bool { return progress().Gap >= 300*time.Millisecond })
		r := traffic.Request{Network: "tcp", To: web, Timeout: 100 * time.Millisecond}
		if a, _ := s.Dial(t.Context(), from, r); a.Outcome != traffic.Timeout {
			t.Errorf("%s to a Service without a fast path: %s", from, a)
		}
		r.To = netip.MustParseAddrPort("10.244.2.11:8080")
		if a, _ := s.Dial(t.Context(), from, r); a.Outcome != traffic.OK {
			t.Errorf("%s to a pod without a fast path: %s", from, a)
		}
		if err := s.Start(t.Context(), acts.Fastpath); err != nil {
			t.Fatal(err)
		}
		turns := progress().Turns
		within(t, "100 more turns", func() bool { return progress().Turns >= turns+100 })
		if p, _ := stream.Stop(t.Context()); p.Broken != 0 {
			t.Errorf("%s: %d of %d flows broke: %s", from, p.Broken, p.Flows, p.First)
		}
	}
}
