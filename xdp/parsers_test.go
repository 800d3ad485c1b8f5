package xdp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// TestParsersAgree: on frames that were damaged at random, the C parser claims exactly what
// Go's parser finds to be of a flow or for a VIP. Frames in which Go finds a fault are free
// to go either way, but pass untouched if they pass.
func TestParsersAgree(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	must(t, n.o.SetBackends([]packet.Addr{mapped("10.1.0.3"), mapped("fd00::3"), mapped("10.1.0.1"), mapped("fd00::1"), mapped("fd00:9::3")}))
	n.insertFlows(t)
	n.insert(t, pair{client: "10.1.0.2", clientPort: 2000, vip: "10.96.0.1", vipPort: 53, backend: "10.1.0.3", backendPort: 53, protocol: 17}, conntrack.ModeGo)
	seeds := [][]byte{
		from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80)), from("fd00::2", "fd96::1", 17, udp(1000, 53)),
		from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2000)), from("fd00::3", "fd00::2", 132, tcp(8080, 2000)),
		ip4("10.1.0.3", "10.1.0.2", 17, fragFirst, make([]byte, 12), udp(8080, 2000)),
		ip6("fd00::3", "fd00::2", 44, join([]byte{60, 0, 0, 1, 0, 0, 0, 1}, extensions(3, 17, udp(8080, 2000)))),
		ip6("fd00::3", "fd00::2", 0, join([]byte{43, 0, 1, 4, 0, 0, 0, 0}, []byte{51, 0, 0, 0, 0, 0, 0, 0}, []byte{6, 4}, make([]byte, 22), tcp(8080, 2000))),
	}
	for _, frame := range noise() {
		seeds = append(seeds, frame)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var outcomes [5]int
	claims := 0
	for range 20000 {
		frame := damaged(rng, seeds)
		opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+64), Context: skb{Ifindex: uint32(n.pod)}}
		verdict, err := n.o.bpf.FromPod.Run(&opts)
		if err != nil {
			continue // this kernel does not run so short a frame
		}
		claimed := int(int32(verdict)) != next
		if !claimed && !bytes.Equal(opts.DataOut, frame) {
			t.Fatalf("a frame was changed and passed on\n%x\n%x", frame, opts.DataOut)
		}
		want, outcome := n.wouldClaim(frame)
		if outcomes[outcome]++; outcome != packet.Truncated && outcome != packet.Invalid && claimed != want {
			t.Fatalf("claimed %v in C, %v in Go (outcome %d)\n%x", claimed, want, outcome, frame)
		}
		if claimed {
			claims++
		}
	}
	t.Logf("%d claimed; outcomes OK, no ports, not IP, truncated, invalid: %v", claims, outcomes)
	for outcome, count := range outcomes {
		if count < 100 {
			t.Errorf("outcome %d came %d times; the test hardly covers it", outcome, count)
		}
	}
}

// wouldClaim is the claim by Go's parser and Go's view of the flow table.
func (n *node) wouldClaim(frame []byte) (bool, packet.Outcome) {
	var p packet.Packet
	outcome := p.Parse(frame)
	if outcome != packet.OK && outcome != packet.NoPorts || p.Tagged {
		return false, outcome
	}
	if p.Dst == mapped("10.96.0.1") || p.Dst == mapped("fd96::1") {
		return true, outcome
	}
	if with := *filterOf(n.o.claims.have); p.Fragment {
		// Told by its addresses alone, for only the first fragment has ports. Then a source
		// that is not the pod's own makes it somebody else's.
		own := p.Src == mapped("10.1.0.2") || p.Src == mapped("fd00::2")
		if with.add(p.Dst); own && with == *filterOf(n.o.claims.have) {
			return true, outcome
		}
	}
	if outcome != packet.OK {
		return false, outcome
	}
	if p.Dst == mapped("10.96.0.2") && p.DstPort == 53 && p.Protocol == packet.ProtocolUDP {
		return true, outcome
	}
	var f conntrack.Flow
	found := n.flows.Lookup(&conntrack.Tuple{Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort, Protocol: p.Protocol}, &f)
	return found && f.Mode != conntrack.ModePass, outcome
}

// damaged is one of the seeds with a few bytes changed, and sometimes cut short.
func damaged(rng *rand.Rand, seeds [][]byte) []byte {
	frame := append([]byte{}, seeds[rng.IntN(len(seeds))]...)
	for range rng.IntN(4) {
		frame[12+rng.IntN(len(frame)-12)] = []byte{0, 1, 4, 6, 17, 43, 44, 60, byte(rng.Uint32())}[rng.IntN(9)]
	}
	if rng.IntN(8) == 0 {
		frame = frame[:14+rng.IntN(len(frame)-14)]
	}
	return frame
}
