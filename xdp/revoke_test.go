package xdp

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// A Service with very many established flows, spread over its endpoints.
const (
	crowd    = 100_000
	spread   = 10
	lastID   = backendID // endpoints count downwards from here
	leaving  = 3         // the endpoint that changes
	portBase = 1024
)

// TestOneEndpointDoesNotConcernTheFlowsOfOthers: 100,000 established flows of one Service,
// a packet of each in both directions, before and after one of its ten endpoints changes.
// The flows to that one go to Go, and not one of the others.
func TestOneEndpointDoesNotConcernTheFlowsOfOthers(t *testing.T) {
	o, err := Open(Config{BPFFS: mountBPF(t), FlowSlots: 1 << 19, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { o.Close() })
	n := laneNodeOn(t, o)
	frames := n.fill(t)
	for _, step := range []struct {
		does    string
		change  func(*table.Contents)
		revoked uint64
	}{
		{"nothing has changed", nil, 0},
		{"an endpoint changes", func(c *table.Contents) { c.Backends[leaving].Generation++ }, crowd / spread},
		{"it is as it was", nil, 0},
		{"an endpoint goes", func(c *table.Contents) { c.Backends = append(c.Backends[:leaving:leaving], c.Backends[leaving+1:]...) }, crowd / spread},
		{"another Service changes", func(c *table.Contents) {
			c.Frontends = append(c.Frontends, table.Frontend{ID: 7, Addr: mapped("10.96.0.9"), Port: 80, Protocol: packet.ProtocolTCP, Generation: 9})
		}, 0},
		{"the Service itself changes", func(c *table.Contents) { c.Frontends[0].Generation++ }, crowd},
	} {
		t.Run(step.does, func(t *testing.T) {
			tables := n.crowded(t, step.change)
			began := time.Now()
			must(t, n.o.SyncGenerations(tables))
			took := time.Since(began)
			before, err := n.o.Counters()
			must(t, err)
			n.play(t, frames)
			after, err := n.o.Counters()
			must(t, err)
			hits := after.Hits().Packets - before.Hits().Packets
			punts := after.Punted.Packets - before.Punted.Packets
			byGeneration := after.Punts[CauseGeneration].Packets - before.Punts[CauseGeneration].Packets
			if punts != 2*step.revoked || byGeneration != punts || hits != 2*(crowd-step.revoked) {
				t.Errorf("%d packets were carried, %d punted, %d of them for a generation; want %d and %d", hits, punts, byGeneration, 2*(crowd-step.revoked), 2*step.revoked)
			}
			t.Logf("%d flows: %d punts of %d packets, all for a generation; revoking took %v", crowd, punts, 2*crowd, took.Round(time.Microsecond))
		})
	}
}

// crowded are tables of the Service, after change.
func (n *node) crowded(t *testing.T, change func(*table.Contents)) *table.Snapshot {
	t.Helper()
	return n.tables(t, func(c *table.Contents) {
		c.Backends = nil
		for i := range uint32(spread) {
			c.Backends = append(c.Backends, table.Backend{
				ID: lastID - i, Addr: mapped("10.1.0.3"), Port: uint16(8080 + i), Protocol: packet.ProtocolTCP, Generation: 2, Serving: 1,
			})
		}
		if change != nil {
			change(c)
		}
	})
}

// fill puts the flows into the table and the lane, and returns a packet of each direction.
func (n *node) fill(t *testing.T) (frames [2][][]byte) {
	t.Helper()
	n.flows.SetHalfOpenMax(crowd) // nothing has been sent yet
	for i := range crowd {
		d := decided{
			pair: pair{
				client: "10.1.0.2", clientPort: uint16(portBase + i/2), vip: "10.96.0.1", vipPort: uint16(80 + i%2),
				backend: "10.1.0.3", backendPort: uint16(8080 + i%spread), protocol: packet.ProtocolTCP,
			},
			clientPort: podID, backendPort: otherID,
		}
		fwd, rev := d.decide()
		fwd.Backend, rev.Backend = lastID-uint32(i%spread), lastID-uint32(i%spread)
		if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted {
			t.Fatalf("flow %d: %v", i, r)
		}
		if !n.flows.InstallPair(&fwd) {
			t.Fatalf("flow %d cannot be installed", i)
		}
		frames[0] = append(frames[0], d.there(0x10, "x"))
		frames[1] = append(frames[1], d.back(0x10, "x"))
	}
	return frames
}

// play sends every packet through the program of the device where it comes in.
func (n *node) play(t *testing.T, frames [2][][]byte) {
	t.Helper()
	out := make([]byte, 256)
	for i, ifindex := range [2]int{n.pod, n.other} {
		in := skb{Ifindex: uint32(ifindex)}
		for _, frame := range frames[i] {
			if _, err := n.o.bpf.FromPod.Run(&ebpf.RunOptions{Data: frame, DataOut: out, Context: in}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
