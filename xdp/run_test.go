package xdp

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/reason"
)

// What a program returns: linux/pkt_cls.h and linux/bpf.h.
const (
	next     = -1 // TCX_NEXT: on to the kernel
	dropped  = 2  // TC_ACT_SHOT
	redirect = 7  // TC_ACT_REDIRECT
)

// outcome is all that a test run shows of a packet.
type outcome struct {
	Verdict int
	Frame   []byte
	Mark    uint32
	Counts  map[string]Count // what grew, by the reason's word or claimed, punted, injected
}

// run sends one frame through a program.
func (n *node) run(t testing.TB, p *ebpf.Program, frame []byte, in skb) outcome {
	t.Helper()
	before, err := n.o.Counters()
	must(t, err)
	var out skb
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+64), Context: in, ContextOut: &out}
	verdict, err := p.Run(&opts)
	if err != nil {
		t.Fatalf("test run of %d bytes: %v", len(frame), err)
	}
	after, err := n.o.Counters()
	must(t, err)
	got := outcome{int(int32(verdict)), opts.DataOut, out.Mark, grown(before, after)}
	n.cause = causeGrown(t, before, after, got.Counts["punted"])
	return got
}

// causeGrown is why the one packet punted was punted; none when it was not.
func causeGrown(t testing.TB, before, after Counters, punted Count) (why Cause) {
	t.Helper()
	var all Count
	for c := range before.Punts {
		grew := Count{after.Punts[c].Packets - before.Punts[c].Packets, after.Punts[c].Bytes - before.Punts[c].Bytes}
		if all = all.plus(grew); grew.Packets > 0 {
			why = Cause(c)
		}
	}
	if all != punted {
		t.Errorf("punts by cause add up to %+v, punted are %+v", all, punted)
	}
	return why
}

func grown(before, after Counters) map[string]Count {
	all := map[string]Count{}
	diff := func(word string, a, b Count) {
		if a != b {
			all[word] = Count{b.Packets - a.Packets, b.Bytes - a.Bytes}
		}
	}
	for r := range before.Reasons {
		diff(reason.Reason(r).String(), before.Reasons[r], after.Reasons[r])
	}
	diff("claimed", before.Claimed, after.Claimed)
	diff("punted", before.Punted, after.Punted)
	diff("injected", before.Injected, after.Injected)
	return all
}

func once(frame []byte, words ...string) map[string]Count {
	all := map[string]Count{}
	for _, w := range words {
		all[w] = Count{1, uint64(len(frame))}
	}
	return all
}

// untouched is the outcome of a packet that is not Lace's.
func untouched(frame []byte) outcome {
	return outcome{next, frame, 0, once(frame, reason.NotClaimed.String())}
}

// refused is the outcome of a claimed packet that must not go to Go.
func refused(frame []byte, r reason.Reason) outcome {
	return outcome{dropped, frame, 0, once(frame, "claimed", r.String())}
}

// punted is the outcome of a packet that goes to Go.
func punted(frame []byte, port uint16, why byte) outcome {
	return outcome{redirect, onTrunk(frame, 0x50, why, port), 0, once(frame, "claimed", "punted")}
}

// puntedOut is the outcome of a packet that goes to Go from its way out of a port: it keeps
// the address of its next hop.
func puntedOut(frame []byte, port uint16) outcome {
	o := punted(frame, port, 0x80)
	o.Frame = toNode(o.Frame, [6]byte(frame[:6]))
	return o
}

// onTrunk is the frame with the trunk's Ethernet addresses, spelled out.
func onTrunk(frame []byte, kind, what byte, port uint16) []byte {
	f := append([]byte{}, frame...)
	copy(f, lace0MAC[:])
	copy(f[6:], []byte{0x02, 0x4c, kind, what, byte(port >> 8), byte(port)})
	return f
}

// withMACs is the frame with other Ethernet addresses.
func withMACs(frame []byte, dst, src [6]byte) []byte {
	f := append([]byte{}, frame...)
	copy(f, dst[:])
	copy(f[6:], src[:])
	return f
}

func check(t *testing.T, got, want outcome) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
