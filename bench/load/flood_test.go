package load_test

import (
	"context"
	"testing"
	"time"

	"lace-cni.io/lace/bench/load"
)

// TestFloodKeepsToItsRate: it makes packets, and no more than it was told, however the machine
// is loaded.
func TestFloodKeepsToItsRate(t *testing.T) {
	s := newStage(t)
	g := s.generator(t, 0, flows)
	k := s.sink(t, s.server, false, load.Swallow)
	const rate = 20000
	f := g.Flood(t.Context(), s.cpu, rate)
	await(t, k, 2000)
	if got, err := f.Stop(); err != nil || got <= 0 || got > 1.01*rate {
		t.Errorf("%.0f packets/s, %v; want at most %d", got, err, rate)
	}
}

// await waits until a sink has taken so many.
func await(t *testing.T, k *load.Sink, want uint64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n, err := k.Taken()
		must(t, err)
		if n >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d packets arrived within 20 s, want %d", n, want)
		}
	}
}

// TestSYNsAreWhole: a server answers each, which it does to none whose checksums are wrong,
// and one answers flows from several source addresses.
func TestSYNsAreWhole(t *testing.T) {
	s := newStage(t)
	server, err := load.Serve(s.server, s.to)
	must(t, err)
	defer server.Close()
	back, err := load.OpenTCPSink(s.client, "eth0", port, true)
	must(t, err)
	defer back.Close()
	must(t, back.Set(load.Swallow))
	g := s.generator(t, 0, flows)
	s.flows.SYN = true
	must(t, g.Use(s.flows))
	must(t, g.Warm(t.Context(), s.cpu, flows))
	await(t, back, flows)
}

// TestConversation: one flow and one connection are kept, and a connection that breaks is an
// attempt that failed, after which there is another.
func TestConversation(t *testing.T) {
	s := newStage(t)
	server, err := load.Serve(s.server, s.to)
	must(t, err)
	defer func() { server.Close() }()
	c, err := load.OpenConversation(s.client, s.to)
	must(t, err)
	defer c.Close()
	udp, tcp, err := c.Ask(t.Context(), 20*time.Millisecond)
	if err != nil || len(udp.Times) == 0 || len(tcp.Times) == 0 || udp.Failed+tcp.Failed > 0 {
		t.Fatalf("%d and %d answers, %d and %d failed, %v", len(udp.Times), len(tcp.Times), udp.Failed, tcp.Failed, err)
	}
	must(t, server.Close())
	server, err = load.Serve(s.server, s.to)
	must(t, err)
	failed := 0
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, tcp, err = c.Ask(t.Context(), 20*time.Millisecond)
		must(t, err)
		failed += tcp.Failed
		if len(tcp.Times) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no connection to the new server: %v", tcp.First)
		}
	}
	if failed != 1 {
		t.Errorf("%d attempts failed; want the one on the old connection", failed)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := c.Ask(stopped, time.Minute); err == nil {
		t.Error("a conversation goes on after it was told to stop")
	}
}
