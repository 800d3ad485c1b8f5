package attach

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

var ranges = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}

// patience is for machines that do much else meanwhile; nothing waits for it to pass.
const patience = 20 * time.Second

// record keeps what a follower reported last.
type record struct {
	mu       sync.Mutex
	reports  int
	last     model.Attachments
	problems []model.Problem
}

func (r *record) sink(a model.Attachments, p []model.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports++
	r.last, r.problems = a, p
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reports
}

// await waits until the last report satisfies holds.
func (r *record) await(t *testing.T, what string, holds func(model.Attachments, []model.Problem) bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		r.mu.Lock()
		ok := r.reports > 0 && holds(r.last, r.problems)
		shown := show(r.last)
		problems := r.problems
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s; last report:\n%s%v", what, shown, problems)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// run starts a follower that ends with the test, and is then awaited.
func run(t *testing.T, s netdev.Stack) *record {
	t.Helper()
	r := new(record)
	follow(t, New(Config{Node: "n1", Stack: s, Ranges: ranges}), r)
	return r
}

// follow runs a follower that ends with the test, and is then awaited.
func follow(t *testing.T, f *Follower, r *record) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx, r.sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the follower ended with %v", err)
		}
	})
}

func port(name string) func(model.Attachments, []model.Problem) bool {
	return func(a model.Attachments, _ []model.Problem) bool { return idsOf(a)[name] != 0 }
}

func noPort(name string) func(model.Attachments, []model.Problem) bool {
	return func(a model.Attachments, _ []model.Problem) bool { return idsOf(a)[name] == 0 }
}

// serviceRoutes lists the routes to the trunk, sources included.
func serviceRoutes(t *testing.T, s netdev.Stack) []string {
	t.Helper()
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	links, err := s.Links()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, r := range routes {
		if r.Protocol == netdev.ProtocolLace && r.Device == trunkOf(links).Index {
			out = append(out, r.Destination.String()+" src "+r.Source.String())
		}
	}
	return out
}

func awaitRoutes(t *testing.T, what string, s netdev.Stack, want ...string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := serviceRoutes(t, s)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: service routes %q, want %q", what, got, want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestFollowerReportsPodsAsTheyComeAndGo(t *testing.T) {
	w := newWorld(t)
	r := run(t, w.Fake)
	r.await(t, "the uplink is a port", port("eth0"))
	w.routed("vethA", "10.244.1.5")
	r.await(t, "the pod is a port", port("vethA"))
	w.must(w.DeleteLink("vethA"))
	r.await(t, "the pod is gone", noPort("vethA"))
}

func TestFollowerIsSilentWhenNothingOfImportanceChanges(t *testing.T) {
	w := newWorld(t)
	r := run(t, w.Fake)
	r.await(t, "the uplink is a port", port("eth0"))
	before := r.count()
	w.must(w.SetNeighbour("eth0", "172.30.0.77", netdev.MAC{2, 7})) // read, and found to be nothing
	w.routed("vethA", "10.244.1.5")
	r.await(t, "the pod is a port", port("vethA"))
	// The veth and its route may be read in one pass or in two; the neighbour adds none.
	if more := r.count() - before; more > 2 {
		t.Errorf("%d reports, want at most 2", more)
	}
}

func TestServiceRangesAreRoutedToTheTrunkAndPutBack(t *testing.T) {
	w := newWorld(t)
	run(t, w.Fake)
	want := []string{"10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11"}

	w.trunk(1500)
	awaitRoutes(t, "the fast path made the trunk", w.Fake, want...)

	w.must(w.DeleteRoute(netdev.Route{Destination: ranges[0], Device: w.index(Trunk)}))
	awaitRoutes(t, "somebody removed a route", w.Fake, want...)

	w.must(w.DeleteLink(Trunk))
	w.trunk(1500)
	awaitRoutes(t, "the fast path made the trunk anew", w.Fake, want...)

	w.route("10.96.0.0/16", "172.30.0.1", "eth0")
	awaitRoutes(t, "somebody put another route in its place, and keeps it", w.Fake, want[1])
	w.must(w.DeleteRoute(netdev.Route{Destination: ranges[0], Device: w.index("eth0")}))
	awaitRoutes(t, "and removed it", w.Fake, want...)

	w.must(w.DeleteAddress("eth0", "172.30.0.11/24"))
	w.address("eth0", "172.30.0.13/24")
	awaitRoutes(t, "the node's address changed", w.Fake, "10.96.0.0/16 src 172.30.0.13", want[1])
}

func TestRoutesOfARangeThatIsNoLongerAskedForAreRemoved(t *testing.T) {
	w := newWorld(t)
	lace0 := w.trunk(1500)
	old := netdev.Route{Destination: netip.MustParsePrefix("10.97.0.0/16"), Device: lace0.Index, Protocol: netdev.ProtocolLace}
	foreign := netdev.Route{Destination: netip.MustParsePrefix("10.98.0.0/16"), Device: lace0.Index, Protocol: netdev.ProtocolStatic}
	w.must(w.ReplaceRoute(old))
	w.must(w.ReplaceRoute(foreign))
	run(t, w.Fake)
	awaitRoutes(t, "an agent with other ranges started", w.Fake, "10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11")
	if err := w.DeleteRoute(foreign); err != nil {
		t.Errorf("the route that Lace had not made is gone: %v", err)
	}
}

func TestARouteThatIsRefusedIsAProblemAndTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.Fail("ReplaceRoute", errors.New("no buffer space available"))
	w.trunk(1500)
	r := run(t, w.Fake)
	r.await(t, "both ranges are problems", func(_ model.Attachments, p []model.Problem) bool {
		return slices.Equal(reasons(p), []string{"n1 RouteRefused", "n1 RouteRefused"})
	})
	w.Fail("ReplaceRoute", nil)
	awaitRoutes(t, "the kernel has room again", w.Fake, "10.96.0.0/16 src 172.30.0.11", "fd00:10:96::/112 src fd30::11")
	r.await(t, "no problem is left", func(_ model.Attachments, p []model.Problem) bool { return len(p) == 0 })
}

// TestTheNodeCutsToWhatFits: the trunk takes more than ports do, and the node's own datagrams
// are to be cut to what fits every one of them.
func TestTheNodeCutsToWhatFits(t *testing.T) {
	w := newWorld(t)
	w.trunk(3498)
	run(t, w.Fake)
	want := func(mtu4, mtu6 int) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for {
			routes, err := w.Routes()
			w.must(err)
			got := map[bool]int{}
			for _, r := range routes {
				if r.Protocol == netdev.ProtocolLace {
					got[r.Destination.Addr().Is6()] = r.MTU
				}
			}
			if got[false] == mtu4 && got[true] == mtu6 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the routes have MTU %d and %d, want %d and %d", got[false], got[true], mtu4, mtu6)
			}
			time.Sleep(time.Millisecond)
		}
	}
	want(1500, 1500)
	links, err := w.Links()
	w.must(err)
	for _, l := range links {
		if l.Name == "eth0" {
			l.MTU = 1000
			w.must(w.SetLink(l))
		}
	}
	want(1000, 1280)
}

func TestFollowerOutlivesFailures(t *testing.T) {
	cases := []string{"Watch", "Links", "Routes", "Stations", "Peer"}
	for _, method := range cases {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t)
			w.routed("vethA", "10.244.1.5")
			w.Fail(method, errors.New("try again"))
			r := run(t, w.Fake)
			w.Fail(method, nil)
			r.await(t, "the pod is a port", port("vethA"))
		})
	}
}

func TestRemoveRoutesTakesOursOnly(t *testing.T) {
	w := newWorld(t)
	lace0 := w.trunk(1500)
	for _, to := range ranges {
		w.must(w.ReplaceRoute(netdev.Route{Destination: to, Device: lace0.Index, Protocol: netdev.ProtocolLace}))
	}
	before, _ := w.Routes()
	for range 2 { // the second time there is nothing left
		_, err := RemoveRoutes(w.Fake)
		w.must(err)
	}
	after, _ := w.Routes()
	if len(serviceRoutes(t, w.Fake)) != 0 || len(after) != len(before)-len(ranges) {
		t.Errorf("%d routes before, %d after, want %d fewer and none of Lace's", len(before), len(after), len(ranges))
	}
}
