package xdp

import (
	"os"
	"slices"
	"testing"

	"lace-cni.io/lace/fastpath/affinity"
	"lace-cni.io/lace/fastpath/packet"
)

// TestAffinityOutlivesTheProcess: who was given which backend is known to the next process.
func TestAffinityOutlivesTheProcess(t *testing.T) {
	bpffs := mountBPF(t)
	k := affinity.Key{Client: packet.Addr4([4]byte{10, 1, 0, 2}), Session: 7}
	first := open(t, bpffs)
	records(t, first).Remember(&k, 21, 0, 1, 100)
	must(t, first.Close())

	second := open(t, bpffs)
	if got := records(t, second).Find(&k, 2, 100); got != 21 {
		t.Errorf("backend %d, want 21", got)
	}
	if got := records(t, second).Cap(); got != 131_072 {
		t.Errorf("room for %d clients, want what is documented", got)
	}
}

// TestForeignAffinityPin: something else in its place is removed, and nobody is remembered.
func TestForeignAffinityPin(t *testing.T) {
	bpffs := mountBPF(t)
	o := open(t, bpffs)
	must(t, o.bpf.Settings.Unpin())
	must(t, o.bpf.Settings.Pin(o.pins.mapPath(affinityMap)))
	if n := records(t, o).Len(); n != 0 {
		t.Errorf("%d clients are remembered", n)
	}
	if !slices.Contains(o.Opened().Replaced, affinityMap) {
		t.Errorf("replaced are %v, want %s among them", o.Opened().Replaced, affinityMap)
	}
	if _, err := os.Stat(o.pins.mapPath(affinityMap)); err != nil {
		t.Error(err)
	}
}

func records(t *testing.T, o *Objects) *affinity.Table {
	t.Helper()
	mem, err := o.OpenAffinity()
	must(t, err)
	tab, err := affinity.Map(mem)
	must(t, err)
	if tab.Cap() != AffinityRecords {
		t.Errorf("room for %d clients, want %d", tab.Cap(), AffinityRecords)
	}
	return tab
}
