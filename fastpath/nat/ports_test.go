package nat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
)

// outside is the n-th outside client of a service with one backend; it shows the address
// of the node, with any port of the range.
func outside(n int, backend string) Translation {
	t := translation(udp, fmt.Sprintf("192.0.%d.%d:4000", n>>8, n&255), "10.96.0.1:53", backend)
	t.Source, t.SourcePort = endpoint("172.30.0.11:0")
	return t
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 1)) }

func TestPortsUseTheWholeRange(t *testing.T) {
	for _, c := range []struct{ first, last uint16 }{
		{32768, 32768}, {32768, 32769}, {32768, 32868}, {65400, 65535}, {1, 100}, {40000, 42047},
	} {
		table := newTable(t, 1<<14)
		p := Ports{First: c.first, Last: c.last}
		size := int(c.last) - int(c.first) + 1
		used := map[uint16]bool{}
		r := seeded(uint64(size))
		var fwd, rev conntrack.Flow
		for i := range size {
			tr := outside(i, "10.244.1.3:5353")
			if result := p.Open(table, r, &tr, &fwd, &rev, 1); result != conntrack.Inserted {
				t.Fatalf("%d to %d: flow %d is %v", c.first, c.last, i, result)
			}
			if tr.SourcePort < c.first || tr.SourcePort > c.last || used[tr.SourcePort] {
				t.Fatalf("%d to %d: port %d is outside the range or in use", c.first, c.last, tr.SourcePort)
			}
			if fwd.Rewrite.SrcPort != tr.SourcePort || rev.DstPort != tr.SourcePort {
				t.Fatalf("port is %d, flows say %d and %d", tr.SourcePort, fwd.Rewrite.SrcPort, rev.DstPort)
			}
			used[tr.SourcePort] = true
		}
		tr := outside(size, "10.244.1.3:5353")
		if result := p.Open(table, r, &tr, &fwd, &rev, 1); result != conntrack.Clash {
			t.Errorf("%d to %d: one more flow is %v, want clash", c.first, c.last, result)
		}
		tr = outside(size, "10.244.1.4:5353")
		if result := p.Open(table, r, &tr, &fwd, &rev, 1); result != conntrack.Inserted {
			t.Errorf("%d to %d: towards another backend: %v, want inserted", c.first, c.last, result)
		}
	}
}

// A port that becomes free is found again, not at once but within a quarter second.
func TestPortsFreedAreFoundAgain(t *testing.T) {
	table := newTable(t, 1<<12)
	p := Ports{First: 40000, Last: 40099}
	r := seeded(3)
	flows := make([]conntrack.Flow, 100)
	var rev, fwd conntrack.Flow
	for i := range flows {
		tr := outside(i, "10.244.1.3:5353")
		p.Open(table, r, &tr, &flows[i], &rev, 1)
	}
	open := func(now uint32) (Translation, conntrack.Result) {
		tr := outside(200, "10.244.1.3:5353")
		return tr, p.Open(table, r, &tr, &fwd, &rev, now)
	}
	if _, result := open(1); result != conntrack.Clash {
		t.Fatalf("with all ports in use: %v, want clash", result)
	}
	if !table.Delete(&flows[42]) {
		t.Fatal("flow is gone")
	}
	if _, result := open(1 + holdoff - 1); result != conntrack.Clash {
		t.Errorf("within the holdoff: %v, want clash without a walk", result)
	}
	if _, result := open(1 + holdoff); result != conntrack.Inserted || fwd.Rewrite.SrcPort != flows[42].Rewrite.SrcPort {
		t.Errorf("after the holdoff: %v with port %d, want inserted with %d", result, fwd.Rewrite.SrcPort, flows[42].Rewrite.SrcPort)
	}
}

func TestOpen(t *testing.T) {
	const range1, range2 = 40000, 40009
	podTo := func(vip string) Translation { return translation(tcp, "10.244.1.2:4000", vip, "10.244.1.3:8080") }
	inRange := func(port uint16) bool { return port >= range1 && port <= range2 }
	for _, c := range []struct {
		because string
		before  []Translation
		then    Translation
		want    conntrack.Result
		port    func(uint16) bool
	}{
		{"the client's port is kept where it can be", nil, podTo("10.96.0.1:80"), conntrack.Inserted, func(p uint16) bool { return p == 4000 }},
		{"one port through two VIPs to one backend: the second gets another", []Translation{podTo("10.96.0.1:80")}, podTo("10.96.0.2:80"), conntrack.Inserted, inRange},
		{"the same tuple is the same flow", []Translation{podTo("10.96.0.1:80")}, podTo("10.96.0.1:80"), conntrack.Exists, nil},
		{
			"a hairpin whose ports are all alike would be its own reply",
			nil, translation(tcp, "10.244.1.2:80", "10.96.0.1:80", "10.244.1.2:80"), conntrack.Inserted, inRange,
		},
	} {
		table := newTable(t, 256)
		p := Ports{First: range1, Last: range2}
		r := seeded(9)
		var fwd, rev conntrack.Flow
		for _, tr := range c.before {
			if result := p.Open(table, r, &tr, &fwd, &rev, 1); result != conntrack.Inserted {
				t.Fatalf("%s: flow before is %v", c.because, result)
			}
		}
		if got := p.Open(table, r, &c.then, &fwd, &rev, 1); got != c.want {
			t.Errorf("%s: %v, want %v", c.because, got, c.want)
		}
		if c.port != nil && (!c.port(fwd.Rewrite.SrcPort) || rev.DstPort != fwd.Rewrite.SrcPort) {
			t.Errorf("%s: source port is %d, the reply goes to %d", c.because, fwd.Rewrite.SrcPort, rev.DstPort)
		}
	}
}

func TestOpenWithoutRange(t *testing.T) {
	for _, p := range []Ports{{}, {First: 2, Last: 1}, {First: 0, Last: 65535}} {
		table := newTable(t, 64)
		tr := outside(1, "10.244.1.3:5353")
		var fwd, rev conntrack.Flow
		if result := p.Open(table, seeded(1), &tr, &fwd, &rev, 1); result != conntrack.Clash {
			t.Errorf("range %d to %d: %v, want clash", p.First, p.Last, result)
		}
	}
}

func TestOpenFull(t *testing.T) {
	table := newTable(t, 8)
	p := Ports{First: 1000, Last: 2000}
	r := seeded(4)
	results := map[conntrack.Result]int{}
	for i := range 20 {
		tr := outside(i, "10.244.1.3:5353")
		var fwd, rev conntrack.Flow
		results[p.Open(table, r, &tr, &fwd, &rev, 1)]++
	}
	if results[conntrack.Inserted] != 4 || results[conntrack.Full] != 16 {
		t.Errorf("results are %v, want 4 flows in eight slots and 16 refusals", results)
	}
}

func TestReopen(t *testing.T) {
	table := newTable(t, 256)
	p := Ports{First: 40000, Last: 40009}
	r := seeded(5)
	var old, fwd, rev, other conntrack.Flow
	first := translation(tcp, "10.244.1.2:4000", "10.96.0.1:80", "10.244.1.3:8080")
	second := translation(tcp, "10.244.1.2:4000", "10.96.0.2:80", "10.244.1.4:8080")
	if p.Open(table, r, &first, &old, &rev, 1) != conntrack.Inserted || p.Open(table, r, &second, &other, &rev, 1) != conntrack.Inserted {
		t.Fatal("flows were not inserted")
	}
	again := translation(tcp, "10.244.1.2:4000", "10.96.0.1:80", "10.244.1.4:8080")
	if result := p.Reopen(table, r, &old, &again, &fwd, &rev, 2); result != conntrack.Inserted {
		t.Fatalf("Reopen is %v, want inserted", result)
	}
	if port := fwd.Rewrite.SrcPort; port < 40000 || port > 40009 {
		t.Errorf("source port is %d; 4000 is in use towards the new backend", port)
	}
	if table.Len() != 2 {
		t.Errorf("%d flows, want 2", table.Len())
	}
	if result := p.Reopen(table, r, &old, &again, &fwd, &rev, 3); result != conntrack.Gone {
		t.Errorf("Reopen of what was replaced is %v, want gone", result)
	}
}

// Workers share a range without talking to each other.
func TestPortsOfTwoWorkers(t *testing.T) {
	table := newTable(t, 1<<13)
	const size = 1000
	var wg sync.WaitGroup
	ports := make([][]uint16, 2)
	for w := range ports {
		wg.Go(func() {
			p := Ports{First: 40000, Last: 40000 + size - 1}
			r := seeded(uint64(w))
			for i := range size / 2 {
				tr := outside(w*size+i, "10.244.1.3:5353")
				var fwd, rev conntrack.Flow
				if result := p.Open(table, r, &tr, &fwd, &rev, 1); result != conntrack.Inserted {
					t.Errorf("worker %d, flow %d: %v", w, i, result)
				}
				ports[w] = append(ports[w], tr.SourcePort)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(ports...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != size {
		t.Errorf("%d different ports for %d flows", n, size)
	}
}

// Ports in use are spread, so that a search seldom takes long.
func TestPortsDoNotCluster(t *testing.T) {
	table := newTable(t, 1<<13)
	p := Ports{First: 40000, Last: 40999}
	r := seeded(6)
	var used []uint16
	for i := range 100 {
		tr := outside(i, "10.244.1.3:5353")
		var fwd, rev conntrack.Flow
		p.Open(table, r, &tr, &fwd, &rev, 1)
		used = append(used, tr.SourcePort)
	}
	slices.Sort(used)
	neighbours := 0
	for i := range used[1:] {
		if used[i+1] == used[i]+1 {
			neighbours++
		}
	}
	// One in ten is in use, so about ten of a hundred have a neighbour by chance.
	if neighbours > 30 {
		t.Errorf("%d of 100 random ports out of 1000 are neighbours", neighbours)
	}
}
