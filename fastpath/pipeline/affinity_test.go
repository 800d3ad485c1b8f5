package pipeline

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// sticky lets frontends remember their clients for 10 s, as ports of one Service.
func sticky(names ...string) func(*world) {
	return func(w *world) {
		for _, n := range names {
			f := &w.services[n].frontend
			f.Session, f.Affinity = 7, 10
		}
		w.publish()
	}
}

// calls opens a flow from a client's port and says which backend it got.
func (w *world) calls(from, to string) string {
	w.t.Helper()
	f := w.frame(0, &step{sends: from + " > " + to})
	b := append(make([]byte, 0, 2048), f.Bytes()...)
	trace := &Trace{}
	if r := w.pipeline.Process(w.snapshot, b, w.punt(&step{sends: from + " > " + to}), int64(w.clock), trace); r.Reason != reason.NewFlow {
		w.t.Fatalf("%s to %s: %s\n%s", from, to, r.Reason, account(trace))
	}
	for _, name := range []string{"web", "other", "remote", "remote2"} {
		if w.pipeline.flow.Rewrite.Dst.Netip() == w.addr(name) {
			return name
		}
	}
	return "nobody"
}

// gets opens a dozen flows and says which backend all of them got; "several" if not one.
func (w *world) gets(client, to string) string {
	w.t.Helper()
	got := ""
	for range 12 {
		w.calling++
		b := w.calls(fmt.Sprintf("%s:%d", client, 4000+w.calling), to)
		if got != "" && got != b {
			return "several"
		}
		got = b
	}
	return got
}

// TestAffinity: one client, one backend, at whichever address of the Service port.
func TestAffinity(t *testing.T) {
	for _, family := range []int{4, 6} {
		for _, protocol := range all {
			t.Run(packet.ProtocolName(protocol)+string(rune('0'+family)), func(t *testing.T) { affinityOf(t, family, protocol) })
		}
	}
}

func affinityOf(t *testing.T, family int, protocol uint8) {
	four := backends("web:8080", "other:8080", "remote:8080", "remote2:8080")
	w := newWorld(t, family, protocol)
	w.serve("vip", four...)
	w.serve("vip2", four...)
	if got := w.gets("client", "vip:80"); got != "several" {
		t.Errorf("without affinity every flow got %s", got)
	}
	sticky("vip", "vip2")(w)
	first := w.gets("client", "vip:80")
	if first == "several" {
		t.Error("a client with affinity got several backends")
	}
	if got := w.gets("client", "vip2:80"); got != first {
		t.Errorf("through another address of the Service port it got %s, want %s", got, first)
	}
	w.clock += 8 * time.Second
	if got := w.gets("client", "vip:80"); got != first {
		t.Errorf("after 8 s it got %s, want %s", got, first)
	}
	w.clock += 8 * time.Second
	if got := w.gets("client", "vip:80"); got != first {
		t.Errorf("8 s after its last flow, 16 s after its first one, it got %s, want %s", got, first)
	}
	w.forgets(first)
	w.gone(four)
	w.perPolicy()
	w.switchedOff()
}

// forgets: after the timeout the choice is a new one. Over many clients some get another.
func (w *world) forgets(first string) {
	for range 50 {
		w.clock += 11 * time.Second
		if w.gets("client", "vip:80") != first {
			return
		}
	}
	w.t.Errorf("50 timeouts, and it always got %s", first)
}

// gone: a backend that is not among the usable ones is not given, and a new one is kept.
func (w *world) gone(four []string) {
	w.t.Helper()
	was := w.gets("client", "vip:80")
	var rest []string
	for _, b := range four {
		if b != was+":8080" {
			rest = append(rest, b)
		}
	}
	w.serve("vip", rest...)
	now := w.gets("client", "vip:80")
	if now == was || now == "several" {
		w.t.Errorf("with %s gone it got %s", was, now)
	}
	w.serve("vip", four...)
	if got := w.gets("client", "vip:80"); got != now {
		w.t.Errorf("with %s back it got %s, want %s", was, got, now)
	}
}

// perPolicy: under policy Local an outside client keeps a local one.
func (w *world) perPolicy() {
	w.t.Helper()
	w.serveApart("vip", backends("remote:8080", "remote2:8080"), backends("web:8080", "other:8080"))
	if got := w.gets("outside", "vip:80"); got != "web" && got != "other" {
		w.t.Errorf("an outside client got %s", got)
	}
	if got := w.gets("other", "vip:80"); got != "remote" && got != "remote2" {
		w.t.Errorf("a pod got %s", got)
	}
}

// switchedOff: new flows are free again at once.
func (w *world) switchedOff() {
	w.t.Helper()
	w.serve("vip", "web:8080", "other:8080", "remote:8080", "remote2:8080")
	f := &w.services["vip"].frontend
	f.Affinity = 0
	w.publish()
	if got := w.gets("client", "vip:80"); got != "several" {
		w.t.Errorf("with affinity off every flow got %s", got)
	}
}

// TestAffinityThatNobodyKnows: a pipeline that does not know who is remembered gives one of the
// backends all the same.
func TestAffinityThatNobodyKnows(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolTCP)
	w.serve("vip", "web:8080", "other:8080", "remote:8080")
	sticky("vip")(w)
	w.pipeline = New(Config{Flows: w.flows, Rand: rand.New(rand.NewPCG(1, 2))})
	if got := w.gets("client", "vip:80"); got != "several" {
		t.Errorf("a dozen flows go to %s, want that they are spread", got)
	}
}

// TestAffinityOfPortsIsApart: another port of the Service is another choice.
func TestAffinityOfPortsIsApart(t *testing.T) {
	w := newWorld(t, 4, 6)
	four := backends("web:8080", "other:8080", "remote:8080", "remote2:8080")
	w.serve("vip", four...)
	w.serve("vip2", four...)
	sticky("vip", "vip2")(w)
	differ := false
	for session := range uint64(40) {
		w.services["vip2"].frontend.Session = 100 + session
		w.publish()
		differ = differ || w.gets("client", "vip:80") != w.gets("client", "vip2:80")
	}
	if !differ {
		t.Error("40 ports, and the client always got the backend of the first one")
	}
}

// TestAffinityOfADatagramFlow: a flow that is given another backend takes the client's
// memory with it.
func TestAffinityOfADatagramFlow(t *testing.T) {
	play(t, []scenario{{
		sentence: "UDP whose backend stops serving is given another, which the client's next flow gets too",
		over:     onlyUDP,
		given:    func(w *world) { w.serve("vip", "web:8080"); sticky("vip")(w) },
		steps: steps(connected,
			after(removed("web:8080", "other:8080"), toOther(opens, reason.Repicked)),
			after(serving("vip", "web:8080", "other:8080"), step{sends: "client:4001 > vip:80", is: reason.NewFlow, becomes: "client:4001 > other:8080", via: "direct other", ttl: -1}),
			step{sends: "client:4002 > vip:80", is: reason.NewFlow, becomes: "client:4002 > other:8080", via: "direct other", ttl: -1}),
	}})
}

// TestAffinityDoesNotAllocate: it is asked for every new flow.
func TestAffinityDoesNotAllocate(t *testing.T) {
	w := newWorld(t, 4, 17)
	w.serve("vip", "web:8080", "other:8080")
	sticky("vip")(w)
	f := w.snapshot.FrontendByID(w.services["vip"].frontend.ID)
	v := &w.pipeline.visit
	v.tables, v.in = w.snapshot, &table.Port{}
	ids := w.snapshot.Set(f.Inside)
	if n := testing.AllocsPerRun(100, func() { w.pipeline.pick(f, ids) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
