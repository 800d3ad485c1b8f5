package compile_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
)

// large is n Services with one port and 10 endpoints each.
func large(n int) []*model.Service {
	out := make([]*model.Service, n)
	for i := range out {
		out[i] = largeService(i, 10)
	}
	return out
}

func largeService(i, endpoints int) *model.Service {
	eps := make([]model.Endpoint, endpoints)
	for j := range eps {
		k := i*10 + j
		eps[j] = model.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 128 + byte(k>>16), byte(k >> 8), byte(k)}), Port: 8080, Ready: true, Serving: true}
	}
	vip := netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})
	return &model.Service{
		Name: model.Name{Namespace: "bench", Name: fmt.Sprint("s", i)},
		Ports: []model.ServicePort{{
			Protocol: model.TCP, Port: 80,
			Frontends: []model.Frontend{{Addr: vip, Port: 80, Protocol: model.TCP}},
			Families:  map[int]model.FamilyChoice{4: {Endpoints: eps, Internal: eligible.Select(eps, eligible.Query{})}},
		}},
	}
}

// BenchmarkCold compiles 10,000 Services with 10 endpoints each, from nothing.
func BenchmarkCold(b *testing.B) {
	services := large(10_000)
	b.ReportAllocs()
	for b.Loop() {
		c := compile.New(nil)
		for _, s := range services {
			c.SetService(s)
		}
		if _, _, err := c.Snapshot(1, created); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestart does the same from the ids of the last snapshot.
func BenchmarkRestart(b *testing.B) {
	services := large(10_000)
	c := compile.New(nil)
	for _, s := range services {
		c.SetService(s)
	}
	last := snapshot(b, c, 1)
	b.ReportAllocs()
	for b.Loop() {
		c := compile.New(last)
		for _, s := range services {
			c.SetService(s)
		}
		if _, _, err := c.Snapshot(2, created); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOneEndpoint changes one endpoint among 100,000: what a change costs, and of
// that what is the work on the Service itself.
func BenchmarkOneEndpoint(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		c := compile.New(nil)
		for _, s := range large(n) {
			c.SetService(s)
		}
		either := []*model.Service{largeService(7, 9), largeService(7, 10)}
		generation := uint64(1)
		snapshot(b, c, generation)
		b.Run(fmt.Sprintf("services=%d/set", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.SetService(either[i%2])
			}
		})
		b.Run(fmt.Sprintf("services=%d/snapshot", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.SetService(either[i%2])
				generation++
				if _, _, err := c.Snapshot(generation, created); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory reports what a Compiler keeps per backend beyond the Services.
func BenchmarkMemory(b *testing.B) {
	services := large(10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := compile.New(nil)
	for _, s := range services {
		c.SetService(s)
	}
	if _, _, err := c.Snapshot(1, created); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/100_000, "B/backend")
	runtime.KeepAlive(c)
}
