package xdp

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestSyncClaims: claims come and go; what the programs see follows.
func TestSyncClaims(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	a, b := Claim{Addr: mapped("10.96.0.1")}, Claim{Addr: mapped("fd96::5")}
	narrow := Claim{Addr: mapped("10.96.0.1"), Protocol: 17, Port: 53}
	toA := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	toB := from("fd00::2", "fd96::5", 17, udp(1000, 80))
	toDNS := from("10.1.0.2", "10.96.0.1", 17, udp(1000, 53))
	for _, step := range []struct {
		does      string
		change    func() error
		a, b, dns bool
	}{
		{"none claims nothing", func() error { return n.o.SyncClaims(nil) }, false, false, false},
		{"an address is claimed whole", func() error { return n.o.SyncClaims([]Claim{a}) }, true, false, true},
		{"another comes", func() error { return n.o.SyncClaims([]Claim{a, b}) }, true, true, true},
		{"trimming adds nothing and keeps what is named", func() error { return n.o.TrimClaims([]Claim{b, narrow}) }, false, true, false},
		{"a port alone leaves the rest of its address", func() error { return n.o.SyncClaims([]Claim{narrow}) }, false, false, true},
		{"the same again changes nothing", func() error { return n.o.SyncClaims([]Claim{narrow}) }, false, false, true},
		{"a port beside its address", func() error { return n.o.SyncClaims([]Claim{narrow, a}) }, true, false, true},
		{"trimming to nothing", func() error { return n.o.TrimClaims(nil) }, false, false, false},
	} {
		must(t, step.change())
		for _, c := range []struct {
			frame   []byte
			claimed bool
		}{{toA, step.a}, {toB, step.b}, {toDNS, step.dns}} {
			want := untouched(c.frame)
			if c.claimed {
				want = punted(c.frame, podID, packet.PuntVIP)
			}
			t.Run(step.does, func(t *testing.T) {
				check(t, n.run(t, n.o.bpf.FromPod, c.frame, skb{Ifindex: uint32(n.pod)}), want)
			})
		}
	}
}

// TestSyncSources: an address that moves to another port is the other's from then on.
func TestSyncSources(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	for _, step := range []struct {
		does    string
		sources []table.Address
		want    outcome
	}{
		{"the pod's own address", []table.Address{{Addr: mapped("10.1.0.2"), Port: podID}}, punted(frame, podID, packet.PuntVIP)},
		{"the address moved to another pod", []table.Address{{Addr: mapped("10.1.0.2"), Port: otherID}}, refused(frame, reason.SpoofedSource)},
		{"the address is gone", nil, refused(frame, reason.SpoofedSource)},
	} {
		t.Run(step.does, func(t *testing.T) {
			must(t, n.o.SyncSources(step.sources))
			check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), step.want)
		})
	}
}

// TestAddSources: an address is there before the port is told of it, and until it is let go.
func TestAddSources(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	frame := from("10.1.0.9", "10.96.0.1", 6, tcp(1000, 80))
	ports, addresses := n.ports(), n.addresses()
	added := append(n.addresses(), table.Address{Addr: mapped("10.1.0.9"), Port: podID})
	at := func(does string, want outcome) {
		t.Helper()
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), want)
		})
	}
	must(t, n.o.AddSources(added))
	at("added", punted(frame, podID, packet.PuntVIP))
	must(t, n.o.AddSources(addresses))
	at("not among those that are added", punted(frame, podID, packet.PuntVIP))
	must(t, n.o.SyncPorts(ports))
	must(t, n.o.SyncSources(addresses))
	at("gone", refused(frame, reason.SpoofedSource))
}

// TestMirror: a sync writes what differs, a full map is named with its size and keeps what
// fits.
func TestMirror(t *testing.T) {
	testenv.Privileged(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 2})
	must(t, err)
	defer m.Close()
	r := newMirror[uint32, uint32]("few", m)
	must(t, r.put(map[uint32]uint32{1: 10, 2: 20}))
	err = r.put(map[uint32]uint32{1: 10, 2: 21, 3: 30, 4: 40})
	if err == nil || !strings.Contains(err.Error(), "few: ") || !strings.Contains(err.Error(), "2 of 2 entries") || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("a full map gives %v", err)
	}
	var v uint32
	if must(t, m.Lookup(uint32(2), &v)); v != 21 {
		t.Errorf("an entry that fits was not changed: %d", v)
	}
	must(t, m.Delete(uint32(1))) // behind the mirror's back
	must(t, r.trim(map[uint32]uint32{2: 0}))
	must(t, r.put(map[uint32]uint32{5: 50}))
	fresh := newMirror[uint32, uint32]("few", m)
	must(t, fresh.read())
	if len(fresh.have) != 2 || fresh.have[2] != 21 || fresh.have[5] != 50 {
		t.Errorf("the map holds %v", fresh.have)
	}
}

// TestMirrorReadsAll: a map of many entries is read whole.
func TestMirrorReadsAll(t *testing.T) {
	testenv.Privileged(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 8192})
	must(t, err)
	defer m.Close()
	r := newMirror[uint32, uint32]("many", m)
	want := map[uint32]uint32{}
	for i := range uint32(5000) {
		want[i] = i + 1
	}
	must(t, r.put(want))
	fresh := newMirror[uint32, uint32]("many", m)
	must(t, fresh.read())
	if len(fresh.have) != len(want) {
		t.Errorf("read %d of %d entries", len(fresh.have), len(want))
	}
}
