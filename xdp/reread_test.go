package xdp

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatSomebodyElseWroteIsWrittenOver: entries that were changed, removed or added by
// hand are noticed, and are what they have to be after the next sync.
func TestWhatSomebodyElseWroteIsWrittenOver(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	var told []string
	n.o.repaired = func(p Part, which string) { told = append(told, fmt.Sprint(p, " ", which)) }
	must(t, n.o.Reread())
	if len(told) != 0 {
		t.Fatalf("nothing was changed, told is %q", told)
	}
	frame := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	in := skb{Ifindex: uint32(n.pod)}
	want := n.run(t, n.o.bpf.FromPod, frame, in)
	for name, spoil := range map[string]func(){
		"ports":       func() { must(t, n.o.bpf.Ports.Put(uint32(podID), port{Ifindex: 1})) },
		"devices":     func() { must(t, n.o.bpf.Devices.Delete(uint32(n.pod))) },
		"low_devices": func() { must(t, n.o.bpf.LowDevices.Put(uint32(n.pod), device{})) },
		"sources":     func() { must(t, n.o.bpf.Sources.Put(source{Addr: mapped("10.1.0.2")}, uint32(otherID))) },
		"claims": func() {
			must(t, n.o.bpf.Claims.Delete(claim{Addr: mapped("10.96.0.1")}))
			must(t, n.o.bpf.Claims.Put(claim{Addr: mapped("8.8.8.8")}, uint32(1)))
		},
		"settings": func() {
			s := n.o.settings
			s.Trunk, s.FlowMask = 0, 3
			must(t, n.o.bpf.Settings.Put(uint32(0), s))
		},
		"claim_filter": func() { must(t, n.o.bpf.ClaimFilter.Put(uint32(0), new(filter))) },
	} {
		t.Run(name, func(t *testing.T) {
			told = nil
			spoil()
			must(t, n.o.Reread())
			if len(told) == 0 || !strings.HasPrefix(told[0], fmt.Sprint(PartEntries, " map ", name)) {
				t.Errorf("told is %q, want the map %s", told, name)
			}
			must(t, n.o.SyncPorts(n.ports()))
			must(t, n.o.SyncSources(n.addresses()))
			must(t, n.o.SyncClaims(n.claims()))
			n.setTrunk(t)
			check(t, n.run(t, n.o.bpf.FromPod, frame, in), want)
			told = nil
			must(t, n.o.Reread())
			if len(told) != 0 {
				t.Errorf("all was written over, told is %q", told)
			}
		})
	}
}

// TestRemovedClaimsAreNoRepair: what this process has taken away itself, in the order in which
// the tables change, is not taken for somebody else's work.
func TestRemovedClaimsAreNoRepair(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	all := append(n.claims(), Claim{Addr: mapped("10.96.7.7"), Protocol: 17, Port: 53})
	must(t, n.o.SyncClaims(all))
	var told []string
	n.o.repaired = func(p Part, which string) { told = append(told, fmt.Sprint(p, " ", which)) }
	must(t, n.o.TrimClaims(n.claims()))
	must(t, n.o.Reread())
	must(t, n.o.SyncClaims(n.claims()))
	must(t, n.o.Reread())
	if len(told) != 0 {
		t.Errorf("told is %q, want nothing", told)
	}
	_, narrow := claimSet(n.claims())
	if n.o.claimFilter != *filterOf(n.o.claims.have) || n.o.settings.Narrow != narrow {
		t.Error("what helps to find the claim that went is still there")
	}
}
