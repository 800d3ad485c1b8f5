package servicehealth

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/model"
)

var web = model.Name{Namespace: "demo", Name: "web"}

// sized is a Service with so many endpoints here.
func sized(n int) *model.Service {
	var all []model.Endpoint
	for i := range n {
		all = append(all, endpoint(fmt.Sprintf("10.244.1.%d", i+1)))
	}
	return service(32000, map[int][]model.Endpoint{4: all})
}

// TestCount says which endpoints balancers are told of.
func TestCount(t *testing.T) {
	with := func(edit func(*model.Endpoint)) model.Endpoint {
		e := endpoint("10.244.1.9")
		edit(&e)
		return e
	}
	for _, c := range []struct {
		name      string
		endpoints []model.Endpoint
		want      int
	}{
		{"those that are ready, of this node", []model.Endpoint{endpoint("10.244.1.5"), endpoint("10.244.1.6")}, 2},
		{"none of another node", []model.Endpoint{with(func(e *model.Endpoint) { e.Node = "n2" })}, 0},
		{"none of a node that is not known", []model.Endpoint{with(func(e *model.Endpoint) { e.Node = "" })}, 0},
		{"none that is not ready", []model.Endpoint{with(func(e *model.Endpoint) { e.Ready = false })}, 0},
		{"none that terminates, though it serves and is used", []model.Endpoint{with(func(e *model.Endpoint) { e.Ready, e.Terminating = false, true })}, 0},
		{"an address with two ports once", []model.Endpoint{endpoint("10.244.1.9"), with(func(e *model.Endpoint) { e.Port = 9090 })}, 1},
	} {
		s := service(32000, map[int][]model.Endpoint{4: c.endpoints, 6: nil})
		if d := cmp.Diff(counts{4: c.want, 6: 0}, count(s, "n1")); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	s := sized(2)
	s.Ports = append(s.Ports, sized(3).Ports...)
	if got := count(s, "n1"); got[4] != 3 {
		t.Errorf("addresses over two ports, two of them in both: %d, want 3", got[4])
	}
}

// TestAnswersAreThoseOfTheGenerationInUse, whatever was published since.
func TestAnswersAreThoseOfTheGenerationInUse(t *testing.T) {
	w, port := start(t, nil), free(t)
	of := func(n int) *model.Service {
		s := sized(n)
		s.HealthPort = port
		return s
	}
	w.Announce(1, []*model.Service{of(1)}, nil)
	answers(t, at("127.0.0.1", port), 503, "0") // published, and not in use by anybody yet
	for g := uint64(1); g < 50; g++ {
		w.Announce(g+1, []*model.Service{of(int(g+1) % 3)}, nil) // the next one waits already
		w.inUse.Store(g)
		code := 200
		if g%3 == 0 {
			code = 503
		}
		answers(t, at("127.0.0.1", port), code, fmt.Sprint(g%3))
	}
	w.inUse.Store(0) // a fast path that starts
	answers(t, at("127.0.0.1", port), 200, fmt.Sprint(49%3))
}

// TestLedgerIsLikeOneThatForgetsNothing over random orders of publishing and use.
func TestLedgerIsLikeOneThatForgetsNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var l ledger
		all, newest, used := map[uint64]int{}, uint64(r.IntN(5)), uint64(0)
		for range 200 {
			switch r.IntN(4) {
			case 0, 1: // the next generation, or, after a write that failed, the same one with something else
				if newest == used || r.IntN(3) > 0 {
					newest++
				}
				if newest-used > behind {
					newest = used + 1 // more than it promises to keep is not asked for
					for g := range all {
						if g > newest {
							delete(all, g)
						}
					}
				}
				n := r.IntN(4)
				all[newest] = n
				l.add(newest, "n1", []*model.Service{sized(n)})
			case 2:
				if newest > used {
					used += uint64(r.IntN(int(newest-used) + 1))
				}
			}
			want, from := 0, uint64(0)
			for g, n := range all {
				if g <= used && g >= from {
					want, from = n, g
				}
			}
			if got := l.local(web, 4, used); got != want {
				t.Fatalf("seed %d: %d endpoints by generation %d, want %d", seed, got, used, want)
			}
		}
	}
}

// TestAFastPathThatIsFarBehind costs a bounded number of editions.
func TestAFastPathThatIsFarBehind(t *testing.T) {
	var l ledger
	for g := range uint64(10 * behind) {
		l.add(g+1, "n1", []*model.Service{sized(int(g) % 3)})
	}
	if len(l.editions) > behind+1 {
		t.Errorf("%d editions are kept, want %d at most", len(l.editions), behind+1)
	}
	if got, want := l.local(web, 4, 10*behind), (10*behind-1)%3; got != want {
		t.Errorf("%d endpoints by the last generation, want %d", got, want)
	}
}

// TestCountsAreKept for Services that did not change.
func TestCountsAreKept(t *testing.T) {
	var l ledger
	s := sized(3)
	l.add(1, "n1", []*model.Service{s})
	s.Ports = nil // nobody may; here it shows whether it is counted again
	l.add(2, "n1", []*model.Service{s})
	if got := l.local(web, 4, 2); got != 3 {
		t.Errorf("%d endpoints, want the 3 that were counted before", got)
	}
}
