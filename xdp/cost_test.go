package xdp

import (
	"math"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/packet"
)

// TestPacketsInTheKernelDoNotCostMoreWithMoreServices: a packet that is claimed, and one that
// is nobody's, take about as much of the processor beside 20,000 addresses of Services as
// beside 20. Both are measured in turns, and the quickest round counts.
func TestPacketsInTheKernelDoNotCostMoreWithMoreServices(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := newNode(t, open(t, mountBPF(t)))
	frames := map[string][]byte{
		"claimed": from("10.1.0.2", "10.96.0.1", 6, tcp(1, 2)), "unclaimed": from("10.1.0.2", "10.1.0.9", 6, tcp(1, 2)),
	}
	const most = 4
	least := map[string]*[2]int64{}
	for name := range frames {
		least[name] = &[2]int64{math.MaxInt64, math.MaxInt64}
	}
	for range 3 {
		for i, services := range []int{20, 20_000} {
			must(t, n.o.SyncClaims(addresses(services)))
			for name, frame := range frames {
				for range 5 {
					least[name][i] = min(least[name][i], n.takes(t, frame))
				}
			}
		}
	}
	for name, l := range least {
		if l[1] > most*l[0] {
			t.Errorf("%s: %d ns for %d of them beside 20,000 addresses, %d ns beside 20: more than %d times as much", name, l[1], repeats, l[0], most)
		}
	}
}

const repeats = 5000

// addresses are claims of so many Services, the first of which is 10.96.0.1.
func addresses(n int) (out []Claim) {
	for i := range n {
		out = append(out, Claim{Addr: packet.Addr4([4]byte{10, 96, byte((i + 1) >> 8), byte(i + 1)})})
	}
	return out
}

// takes is the processor time of so many packets from the pod.
func (n *node) takes(t *testing.T, frame []byte) int64 {
	t.Helper()
	start := threadTime(t)
	if _, err := n.o.bpf.FromPod.Run(&ebpf.RunOptions{Data: frame, Repeat: repeats, Context: skb{Ifindex: uint32(n.pod)}}); err != nil {
		t.Fatal(err)
	}
	return threadTime(t) - start
}

func threadTime(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts))
	return ts.Nano()
}
