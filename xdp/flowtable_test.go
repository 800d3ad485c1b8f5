package xdp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// homes counts how many of the table's slots in use lie in the near, the first and the
// second of their buckets, by the definition of the hash, spelled out once more.
func homes(mem []byte, keys [10]uint32, buckets int) (near, first, second int) {
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(mem[at:]) }
	nh := func(i int, a, b uint32) uint64 { return uint64(a+keys[i]) * uint64(b+keys[i+1]) }
	for slot := 1; slot <= 8*buckets; slot++ {
		at := slot * conntrack.SlotSize
		key := binary.LittleEndian.Uint64(mem[at+8:])
		if key>>63 == 0 {
			continue
		}
		h := nh(0, uint32(key), uint32(key>>32)) + nh(2, word(at+16), word(at+20))
		if key>>62&1 == 1 {
			high := at + 64
			h += nh(4, word(high), word(high+4)) + nh(6, word(high+8), word(high+12)) + nh(8, word(high+16), word(high+20))
		}
		h ^= h >> 32
		h *= 0xd6e8feb86659fd93
		h ^= h >> 32
		switch bucket := uint32(slot-1) / 8; bucket {
		case uint32(h>>20) & 4095 & uint32(buckets-1):
			near++
		case uint32(h) & uint32(buckets-1):
			first++
		case uint32(h>>32) & uint32(buckets-1):
			second++
		}
	}
	return near, first, second
}

// TestFlowTable: what Go writes, the programs find: both families, both directions, in the
// near bucket, the first and the second; in a table that is larger than its near buckets,
// too; and nothing else.
func TestFlowTable(t *testing.T) {
	for _, c := range []struct {
		family string
		slots  int
		full   bool
	}{{"IPv4", 256, true}, {"IPv6", 256, true}, {"IPv4", 1 << 16, false}, {"IPv6", 1 << 16, false}} {
		family := c.family
		t.Run(fmt.Sprintf("%s in %d slots", family, c.slots), func(t *testing.T) {
			bpffs := mountBPF(t)
			o, err := Open(Config{BPFFS: bpffs, FlowSlots: c.slots})
			must(t, err)
			t.Cleanup(func() { o.Close() })
			n := newNode(t, o)
			must(t, o.SyncClaims(nil)) // so that only the flow table claims

			rng := rand.New(rand.NewPCG(1, 2))
			var in []pair
			for range 200 {
				p := randomPair(rng, family)
				fwd, rev := p.flows()
				if n.flows.Insert(&fwd, &rev, 1) == conntrack.Inserted {
					in = append(in, p)
				}
			}
			near, first, second := homes(o.flows, n.flows.Keys(), n.flows.Buckets())
			if near+first+second != 2*len(in) || near == 0 || c.full != (first > 0) || c.full != (second > 0) {
				t.Fatalf("%d flows lie %d times in their near bucket, %d in their first and %d in their second: the table does not lie as agreed, or the test does not fill it", len(in), near, first, second)
			}
			t.Logf("%d slots in their near bucket, %d in their first, %d in their second", near, first, second)
			for _, p := range in {
				n.findBoth(t, p)
			}
			for range 200 {
				p := randomPair(rng, family)
				frame := from(p.client, p.vip, p.protocol, udp(p.clientPort, p.vipPort))
				check(t, n.run(t, o.bpf.ToPort, frame, skb{Ifindex: uint32(n.pod)}), untouched(frame))
			}
		})
	}
}

func (n *node) findBoth(t *testing.T, p pair) {
	t.Helper()
	for _, frame := range [][]byte{
		from(p.client, p.vip, p.protocol, udp(p.clientPort, p.vipPort)),
		from(p.backend, p.client, p.protocol, udp(p.backendPort, p.clientPort)),
	} {
		check(t, n.run(t, n.o.bpf.ToPort, frame, skb{Ifindex: uint32(n.pod)}), puntedOut(frame, podID))
	}
}

func randomPair(r *rand.Rand, family string) pair {
	port := func() uint16 { return uint16(r.Uint32()) }
	p := pair{clientPort: port(), vipPort: port(), backendPort: port(), protocol: packet.ProtocolUDP}
	address := func() string {
		if family == "IPv4" {
			return fmt.Sprintf("10.%d.%d.%d", r.IntN(256), r.IntN(256), r.IntN(256))
		}
		return fmt.Sprintf("2001:%x:%x:%x:%x:%x:%x:%x", port(), port(), port(), port(), port(), port(), port())
	}
	p.client, p.vip, p.backend = address(), address(), address()
	return p
}

// TestDeletedFlow: a flow that Go deletes is not found any more, one that shares its bucket
// still is.
func TestDeletedFlow(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	gone := pair{client: "10.1.0.2", clientPort: 1, vip: "10.96.9.9", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}
	stays := gone
	stays.clientPort = 2
	n.insert(t, gone, conntrack.ModeGo)
	n.insert(t, stays, conntrack.ModeGo)
	fwd, _ := gone.flows()
	var f conntrack.Flow
	if !n.flows.Lookup(&fwd.Tuple, &f) || !n.flows.Delete(&f) {
		t.Fatal("the flow cannot be deleted")
	}
	frame := from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 1))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), untouched(frame))
	frame = from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 2))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), punted(frame, otherID, 0))
}

// TestTornSlot: a slot that is being written is found by its tuple all the same: a reply
// must not leak while its flow is changed.
func TestTornSlot(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insert(t, pair{client: "10.1.0.2", clientPort: 1, vip: "10.96.9.9", vipPort: 80, backend: "10.1.0.3", backendPort: 8080, protocol: 6}, conntrack.ModeGo)
	mem, _ := n.o.FlowMemory()
	for at := conntrack.SlotSize; at < len(mem); at += conntrack.SlotSize {
		binary.LittleEndian.PutUint32(mem[at:], binary.LittleEndian.Uint32(mem[at:])|1)
	}
	frame := from("10.1.0.3", "10.1.0.2", 6, tcp(8080, 1))
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.other)}), punted(frame, otherID, 0))
}
