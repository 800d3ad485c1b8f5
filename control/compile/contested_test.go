package compile_test

import (
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// crowd is n Services of different age, the youngest first, with what each wants.
func crowd(n int, want func(i int, s *model.Service)) []*model.Service {
	out := make([]*model.Service, n)
	for i := range out {
		out[i] = largeService(i, 1)
		out[i].Created = time.Unix(int64(1+n-i), 0)
		want(i, out[i])
	}
	return out
}

// sameAddress has them all want one address and port.
func sameAddress(_ int, s *model.Service) {
	s.Ports[0].Frontends[0].Addr = netip.MustParseAddr("10.96.0.1")
}

// crowds are the ways in which many Services can want the same.
var crowds = []struct {
	name string
	want func(i int, s *model.Service)
}{
	{"one ClusterIP", sameAddress},
	{"one address of a balancer", func(i int, s *model.Service) {
		sameAddress(i, s)
		s.Ports[0].Frontends[0].Kind = model.LoadBalancer
	}},
	{"one node port, which is the health check port of each of them", func(_ int, s *model.Service) {
		s.Ports[0].Frontends[0] = model.Frontend{Kind: model.NodePort, Addr: netip.MustParseAddr("172.30.0.11"), Port: 30080, Protocol: model.TCP}
		s.HealthPort = 30080
	}},
	{"the address of a pod", func(_ int, s *model.Service) { s.Ports[0].Frontends[0].Addr = netip.MustParseAddr("10.244.1.2") }},
}

// TestServicesDoNotCostMoreWithMoreServicesThatWantTheSame: to add, to change and to remove a
// Service takes about as much of the processor when 8,000 want one address and port as when
// 500 do. The quickest round counts; a walk over all that want it, for each of them, would
// make it sixteen times as much.
func TestServicesDoNotCostMoreWithMoreServicesThatWantTheSame(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const few, many, most = 500, 8_000, 5
	for _, tc := range crowds {
		each := func(n, rounds int) int64 {
			all, again := crowd(n, tc.want), crowd(n, tc.want)
			for _, s := range again {
				s.UID = "made anew"
			}
			least := int64(math.MaxInt64)
			for range rounds {
				least = min(least, comeAndGo(t, all, again))
			}
			return least / int64(n)
		}
		if a, b := each(few, 10), each(many, 2); b > most*a {
			t.Errorf("%s: a Service takes %d ns when %d want it, %d ns when %d do: more than %d times as much", tc.name, b, many, a, few, most)
		}
	}
}

// comeAndGo is the processor time that it takes to add Services, to change each, and to remove
// all but the first, with a snapshot after each.
func comeAndGo(t *testing.T, all, again []*model.Service) int64 {
	t.Helper()
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	runtime.GC()
	start := threadTime(t)
	for i, services := range [][]*model.Service{all, again} {
		for _, s := range services {
			c.SetService(s)
		}
		publish(t, c, uint64(1+i))
	}
	for _, s := range all[1:] {
		c.DeleteService(s.Name)
	}
	publish(t, c, 3)
	return threadTime(t) - start
}

// publish does what is done with each snapshot.
func publish(t *testing.T, c *compile.Compiler, generation uint64) {
	t.Helper()
	if _, _, err := c.Snapshot(generation, created); err != nil {
		t.Fatal(err)
	}
	c.Lost()
	c.Problems()
}

func threadTime(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}

// TestAChangeDoesNotCostMoreWithMoreServicesThatWantTheSame: to change the endpoints of a
// Service that nobody is in the way of makes as many objects when all others want one address
// as when each has its own.
func TestAChangeDoesNotCostMoreWithMoreServicesThatWantTheSame(t *testing.T) {
	const n = 2_000
	made := func(others []*model.Service) float64 {
		c := compile.New(nil)
		c.SetAttachments(twoPods())
		for _, s := range others {
			c.SetService(s)
		}
		either := []*model.Service{largeService(n, 9), largeService(n, 10)}
		generation := uint64(1)
		publish(t, c, generation)
		return testing.AllocsPerRun(20, func() {
			generation++
			c.SetService(either[generation%2])
			publish(t, c, generation)
		})
	}
	apart := made(large(n))
	for _, tc := range crowds {
		if same := made(crowd(n, tc.want)); same > apart+10 {
			t.Errorf("%s: %.0f objects, and %.0f when each has its own", tc.name, same, apart)
		}
	}
}

// TestTheOldestOfManyHasIt: of many that want one address and port the oldest has it, whoever
// comes, goes or changes, in whatever order, and all others are told so.
func TestTheOldestOfManyHasIt(t *testing.T) {
	all := crowd(100, sameAddress)
	c := compile.New(nil)
	for i := range all {
		c.SetService(all[i*37%len(all)]) // all of them, in another order
	}
	generation := uint64(0)
	for left := all; len(left) > 0; left = left[:len(left)-1] {
		generation++
		oldest := left[len(left)-1]
		s, problems := snapshotProblems(t, c, generation)
		diff(t, "the backend of the oldest", oldest.Ports[0].Families[4].Endpoints[0].Addr, s.Backend(s.Set(s.Frontends()[0].Inside)[0]).Addr.Netip())
		var told []string
		for _, p := range problems {
			told = append(told, p.Object+" "+p.Message)
		}
		var want []string
		for _, s := range left[:len(left)-1] {
			want = append(want, fmt.Sprintf("%s 10.96.0.1:80/TCP belongs to Service %s, which is older; give this Service an address of its own", s.Name, oldest.Name))
		}
		slices.Sort(want)
		diff(t, "all others are told", want, told)
		if t.Failed() {
			return
		}
		anew := *left[int(generation)%len(left)] // one changes, and the oldest goes
		anew.UID = "made anew"
		c.SetService(&anew)
		c.DeleteService(oldest.Name)
	}
	if s, problems := snapshotProblems(t, c, generation+1); len(s.Frontends()) > 0 || len(problems) > 0 {
		t.Errorf("without any: %v, %v", frontendsOf(s), problems)
	}
}
