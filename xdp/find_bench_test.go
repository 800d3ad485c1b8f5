package xdp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/xdp/bpf"
	"lace-cni.io/lace/xdp/bpf/stress"
)

// BenchmarkFind measures the kernel's look-up by itself, of another tuple each time, in a
// table at a quarter of its load: misses, which is what unclaimed traffic pays for, and
// hits, with the copy of the decision. A small table stays in the cache, a large one does
// not.
func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		slots   int
		clients uint32
		hit     bool
	}{
		{1 << 12, 1 << 20, false},
		{1 << 20, 1 << 20, false},
		{1 << 12, 1 << 9, true},
		{1 << 20, 1 << 17, true},
	} {
		what := "miss"
		if c.hit {
			what = "hit"
		}
		b.Run(fmt.Sprintf("%s/slots=%d", what, c.slots), func(b *testing.B) { benchFind(b, c.slots, c.clients, c.hit) })
	}
}

func benchFind(b *testing.B, slots int, clients uint32, hit bool) {
	o, err := Open(Config{BPFFS: mountBPF(b), FlowSlots: slots})
	must(b, err)
	b.Cleanup(func() { o.Close() })
	n := newNode(b, o)
	for client := range uint32(slots / 8) {
		fwd, rev := decideBy(client, client)
		if !hit {
			fwd.DstPort, rev.Rewrite.SrcPort = 443, 443 // which nobody looks up
		}
		if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
			b.Fatalf("flow %d: %v", client, r)
		}
	}
	program, sum := loadStress(b, o, work{Random: rand.Uint64(), Clients: clients})
	const most = 1 << 20 // turns of one run of the program
	b.ResetTimer()
	for left := b.N; left > 0; left -= most {
		opts := ebpf.RunOptions{Data: make([]byte, 64), Context: skb{Mark: uint32(min(left, most))}}
		if _, err := program.Run(&opts); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	var found tally
	must(b, sum.Lookup(uint32(0), &found))
	if hit && found.Hits != uint64(b.N) || !hit && found.Misses != uint64(b.N) {
		b.Errorf("%d look-ups found %+v", b.N, found)
	}
}

// loadStress loads the program that looks up, beside the tables of o.
func loadStress(t testing.TB, o *Objects, w work) (program *ebpf.Program, sum *ebpf.Map) {
	t.Helper()
	var loaded stress.StressObjects
	spec, err := stress.LoadStress()
	must(t, err)
	spec.Maps[bpf.LaceMapFlows].MaxEntries = o.bpf.Flows.MaxEntries()
	spec.Maps[bpf.LaceMapFlowTags].MaxEntries = o.bpf.FlowTags.MaxEntries()
	must(t, spec.LoadAndAssign(&loaded, &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		bpf.LaceMapFlows: o.bpf.Flows, bpf.LaceMapFlowTags: o.bpf.FlowTags, bpf.LaceMapSettings: o.bpf.Settings,
	}}))
	t.Cleanup(func() { loaded.Close() })
	must(t, loaded.Work.Put(uint32(0), w))
	return loaded.StressPrograms.Stress, loaded.Tally
}
