package xdp

import (
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// TestLaneRevoke: when frontend, backend or target is not what it was, both directions that
// it concerns go to Go from the next packet on, and no others; when it is again what it was
// they run again.
func TestLaneRevoke(t *testing.T) {
	n := laneNode(t)
	n.install(t, laneTCP)
	another := laneTCP
	another.pair.clientPort = 41000
	fwd, rev := another.decide()
	fwd.Frontend, rev.Frontend = 1, 1
	fwd.Backend, rev.Backend = BackendIDs-1, BackendIDs-1
	fwd.Stamp, rev.Stamp = conntrack.Stamp{Target: 3}, conntrack.Stamp{Target: 3}
	if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted || !n.flows.InstallPair(&fwd) {
		t.Fatalf("inserting: %v", r)
	}
	neighbours := func(c *table.Contents) {
		c.Frontends = append(c.Frontends, table.Frontend{ID: 1, Addr: mapped("10.96.0.9"), Port: 1, Protocol: packet.ProtocolTCP})
		c.Backends = append(c.Backends, table.Backend{ID: BackendIDs - 1, Addr: mapped("10.1.0.9"), Port: 1, Protocol: packet.ProtocolTCP})
	}
	const both, thereOnly, backOnly = 3, 1, 2
	for does, c := range map[string]struct {
		change  func(*table.Contents)
		revoked int
	}{
		"the frontend is another by now":            {func(c *table.Contents) { c.Frontends[0].Generation = 2 }, both},
		"the frontend is gone":                      {func(c *table.Contents) { c.Frontends = c.Frontends[1:] }, both},
		"the frontend's generation went once round": {func(c *table.Contents) { c.Frontends[0].Generation = 0 }, both},
		"the backend is another by now":             {func(c *table.Contents) { c.Backends[0].Generation = 0xffff }, both},
		"the backend is gone":                       {func(c *table.Contents) { c.Backends = c.Backends[1:] }, both},
		"the backend's port is another by now":      {func(c *table.Contents) { portOf(c, otherID).Generation++ }, thereOnly},
		"the client's port is another by now":       {func(c *table.Contents) { portOf(c, podID).Generation-- }, backOnly},
		"both ports are gone":                       {func(c *table.Contents) { c.Ports = c.Ports[:1] }, both},
		"another port is gone":                      {func(c *table.Contents) { c.Ports = c.Ports[:len(c.Ports)-1] }, 0},
	} {
		t.Run(does, func(t *testing.T) {
			in := n.o.bpf.FromPod
			must(t, n.o.SyncGenerations(n.tables(t, func(k *table.Contents) { neighbours(k); c.change(k) })))
			if c.revoked&thereOnly != 0 {
				n.punts(t, in, n.pod, laneTCP.there(ack, "x"), podID, CauseGeneration)
			} else {
				n.hits(t, in, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
			}
			if c.revoked&backOnly != 0 {
				n.punts(t, in, n.other, laneTCP.back(ack, "x"), otherID, CauseGeneration)
			} else {
				n.hits(t, in, skb{Ifindex: uint32(n.other)}, laneTCP.back(ack, "x"))
			}
			must(t, n.o.SyncGenerations(n.tables(t, neighbours)))
			n.hits(t, in, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
			n.hits(t, in, skb{Ifindex: uint32(n.other)}, laneTCP.back(ack, "x"))
			n.hits(t, in, skb{Ifindex: uint32(n.pod)}, another.there(ack, "x")) // generations 0 exist
		})
	}
}

func portOf(c *table.Contents, id uint16) *table.Port {
	for i := range c.Ports {
		if c.Ports[i].ID == id {
			return &c.Ports[i]
		}
	}
	return &table.Port{}
}

// TestLaneIDsBeyond: an id without a place for its generation is never valid, and the one
// that would share its place if the index were cut is left alone.
func TestLaneIDsBeyond(t *testing.T) {
	n := laneNode(t)
	must(t, n.o.SyncGenerations(n.tables(t, func(c *table.Contents) {
		c.Frontends = append(c.Frontends, table.Frontend{ID: frontendID + FrontendIDs, Addr: mapped("10.96.0.9"), Port: 1, Protocol: packet.ProtocolTCP, Generation: 9})
		c.Backends = append(c.Backends, table.Backend{ID: backendID + BackendIDs, Addr: mapped("10.1.0.9"), Port: 1, Protocol: packet.ProtocolTCP, Generation: 9})
	})))
	for does, change := range map[string]func(f *conntrack.Flow){
		"a frontend": func(f *conntrack.Flow) { f.Frontend += FrontendIDs },
		"a backend":  func(f *conntrack.Flow) { f.Backend += BackendIDs },
		"a target":   func(f *conntrack.Flow) { f.Target += table.MaxPorts },
	} {
		fwd, rev := laneTCP.decide()
		change(&fwd)
		if r := n.flows.Insert(&fwd, &rev, 1); r != conntrack.Inserted || !n.flows.InstallPair(&fwd) {
			t.Fatalf("inserting: %v", r)
		}
		t.Run(does, func(t *testing.T) {
			n.punts(t, n.o.bpf.FromPod, n.pod, laneTCP.there(ack, "x"), podID, CauseGeneration)
		})
		n.flows.Delete(&fwd)
	}
	n.install(t, laneTCP)
	n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
}

// TestLaneSurvives: what is installed runs on when the process has gone, and when the next
// one has come, which takes away what its tables do not have.
func TestLaneSurvives(t *testing.T) {
	n := laneNode(t)
	bpffs := strings.TrimSuffix(string(n.o.pins), "/lace")
	n.install(t, laneTCP)
	must(t, n.o.Close())
	if err := n.o.SyncGenerations(n.tables(t, nil)); err == nil {
		t.Error("generations were written after Close")
	}
	n.o = open(t, bpffs)
	n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
	must(t, n.o.SyncGenerations(n.tables(t, nil)))
	n.hits(t, n.o.bpf.FromPod, skb{Ifindex: uint32(n.pod)}, laneTCP.there(ack, "x"))
	must(t, n.o.SyncGenerations(n.tables(t, func(c *table.Contents) { c.Frontends = nil })))
	n.punts(t, n.o.bpf.FromPod, n.pod, laneTCP.there(ack, "x"), podID, CauseGeneration)
}

// BenchmarkSyncGenerations measures what a snapshot costs in which one generation changed.
func BenchmarkSyncGenerations(b *testing.B) {
	o := open(b, mountBPF(b))
	var c table.Contents
	c.Settings = table.DefaultSettings()
	for i := range uint32(100_000) {
		a := packet.Addr4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		c.Backends = append(c.Backends, table.Backend{ID: i + 1, Addr: a, Port: 80, Protocol: packet.ProtocolTCP, Generation: 1})
		if i < 10_000 {
			c.Frontends = append(c.Frontends, table.Frontend{ID: i + 1, Addr: a, Port: 80, Protocol: packet.ProtocolTCP, Generation: 1})
		}
	}
	var both [2]*table.Snapshot
	for i := range both {
		c.Backends[500].Generation++
		encoded, err := table.Encode(nil, &c)
		must(b, err)
		both[i], err = table.Load(encoded)
		must(b, err)
	}
	must(b, o.SyncGenerations(both[0]))
	b.ResetTimer()
	for i := range b.N {
		must(b, o.SyncGenerations(both[i%2]))
	}
}
