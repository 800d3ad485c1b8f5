package xdp

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cilium/ebpf"
)

// TestMapsAreVisible: whoever walks the kernel's BPF maps, as bpftool map show does, finds
// every one of Lace's by its name, with the type information by which a dump has field names,
// and reads what is in it.
func TestMapsAreVisible(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	must(t, n.o.SyncClaims([]Claim{{Addr: mapped("10.96.0.1")}, {Addr: mapped("192.0.2.7"), Protocol: 17, Port: 53}}))
	seen := walk(t)
	for name, m := range n.o.maps() {
		own, err := m.Info()
		must(t, err)
		id, _ := own.ID()
		shown, ok := seen[id]
		if !ok {
			t.Errorf("map %s is not among the kernel's", name)
			continue
		}
		if want := name[:min(len(name), 15)]; shown.Name != want { // BPF_OBJ_NAME_LEN
			t.Errorf("map %s is shown as %q", name, shown.Name)
		}
		if _, typed := shown.BTFID(); !typed && own.KeySize > 0 && own.Type != ebpf.XSKMap {
			t.Errorf("map %s is shown without types", name)
		}
		if name == "claims" {
			readClaims(t, id)
		}
	}
}

// walk finds every map of the kernel.
func walk(t *testing.T) map[ebpf.MapID]*ebpf.MapInfo {
	t.Helper()
	out := map[ebpf.MapID]*ebpf.MapInfo{}
	for id, err := ebpf.MapGetNextID(0); ; id, err = ebpf.MapGetNextID(id) {
		if errors.Is(err, fs.ErrNotExist) {
			return out
		}
		must(t, err)
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another test's, gone meanwhile
		}
		must(t, err)
		if out[id], err = m.Info(); err != nil {
			t.Fatal(err)
		}
		m.Close()
	}
}

// readClaims reads addresses of Services out of a map that is known by its number alone.
func readClaims(t *testing.T, id ebpf.MapID) {
	t.Helper()
	m, err := ebpf.NewMapFromID(id)
	must(t, err)
	defer m.Close()
	var key claim
	var value []byte
	got := 0
	for entries := m.Iterate(); entries.Next(&key, &value); got++ {
	}
	if got != 2 {
		t.Errorf("%d claims can be read, want 2", got)
	}
}
