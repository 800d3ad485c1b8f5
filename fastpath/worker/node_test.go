package worker

import (
	"context"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/table"
)

// node is what workers share: tables with one Service on 10.96.0.10:80 over UDP, whose
// client is behind port 2 and whose backend is behind port 3.
type node struct {
	t        *testing.T
	flows    *conntrack.Table
	snapshot atomic.Pointer[table.Snapshot]
	file     *counter.File
	path     string
}

func newNode(t *testing.T, workers int) *node {
	t.Helper()
	flows, err := conntrack.New(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, flows: flows, path: filepath.Join(t.TempDir(), "counters")}
	if n.file, err = counter.Create(n.path, workers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.file.Close() })
	n.snapshot.Store(tables(t, func(*table.Contents) {}))
	return n
}

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

func tables(t *testing.T, change func(*table.Contents)) *table.Snapshot {
	t.Helper()
	set := table.Set{Count: 1}
	c := table.Contents{
		Generation: 1, Settings: table.DefaultSettings(),
		Ports: []table.Port{
			{ID: 1, Kind: table.PortHost, MTU: 1500}, {ID: 2, Kind: table.PortPod, MTU: 1500}, {ID: 3, Kind: table.PortPod, MTU: 1500},
		},
		Frontends:  []table.Frontend{{ID: 1, Addr: addr("10.96.0.10"), Port: 80, Protocol: packet.ProtocolUDP, Inside: set, Outside: set}},
		BackendIDs: []uint32{1},
		Backends:   []table.Backend{{ID: 1, Addr: addr("10.244.1.3"), Port: 8080, Protocol: packet.ProtocolUDP, Serving: 1}},
		Addresses: []table.Address{
			{Addr: addr("10.244.1.2"), Port: 2}, {Addr: addr("10.244.1.3"), Port: 3},
		},
	}
	for i := range c.Ports {
		if err := c.Ports[i].SetDevice("dev" + string('0'+rune(c.Ports[i].ID))); err != nil {
			t.Fatal(err)
		}
	}
	change(&c)
	b, err := table.Encode(nil, &c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// worker makes worker i of the node on a port.
func (n *node) worker(i int, p port.Port) *Worker {
	sweepSlots := 0
	if i == 0 {
		sweepSlots = 100 * n.flows.Cap() // so often around that a test need not wait
	}
	return New(Config{
		Port: p, Pipeline: pipeline.New(pipeline.Config{Flows: n.flows}),
		Snapshot: &n.snapshot, Counters: n.file.Worker(i), SweepSlots: sweepSlots,
	})
}

// start runs a worker until the test ends; then every frame must be accounted for.
func (n *node) start(w *Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("Run: %v", err)
		}
		if err := w.Conserved(); err != nil {
			n.t.Error(err)
		}
	}
	n.t.Cleanup(stop)
	return stop
}

func (n *node) totals() counter.Totals {
	n.t.Helper()
	r, err := counter.Open(n.path)
	if err != nil {
		n.t.Fatal(err)
	}
	defer r.Close()
	return r.Totals()
}

func memory(t *testing.T, frames int) *port.Memory {
	t.Helper()
	m, err := port.NewMemory(frames, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// request is a datagram of the client from a source port, punted.
func request(source uint16) []byte {
	f := frame.UDP("10.244.1.2:1", "10.96.0.10:80", "question")
	f.Src = netip.AddrPortFrom(f.Src.Addr(), source)
	return punted(f, 2)
}

func punted(f frame.Frame, id uint16) []byte {
	b := f.Bytes()
	packet.WritePunt(b, packet.Punt{Port: id, Why: packet.PuntVIP})
	return b
}

// eventually waits for a condition, not for a time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
