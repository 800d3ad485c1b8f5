package simulated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/fastpath/worker"
)

// node is the fast path of n1 and what the kernel does for it.
type node struct {
	stateDir string
	slots    []byte // of the flow table; outlive the fast path
	tags     []byte // of its buckets
	tables   atomic.Pointer[table.Snapshot]
	flows    atomic.Pointer[conntrack.Reader] // what the claim rule sees of the flow table, as the kernel does
	serving  atomic.Bool                      // the fast path is there
	port     *port.Memory
	running  *process
	claimed  uint64 // frames that the claim rule took; owned by the network's goroutine
}

// Sizes: as many flows as the lab's, and frames for a good burst.
const (
	flowSlots = 1 << 17
	frames    = 8192
	frameSize = 2048
)

func newNode(stateDir string) (*node, error) {
	p, err := port.NewMemory(frames, frameSize)
	if err != nil {
		return nil, err
	}
	n := conntrack.RoundSlots(flowSlots)
	return &node{
		stateDir: stateDir, port: p,
		slots: aligned(n * conntrack.SlotSize), tags: aligned(conntrack.BucketsIn(n) * conntrack.TagSize),
	}, nil
}

// aligned is memory that begins at a multiple of 8 bytes.
func aligned(size int) []byte {
	words := make([]uint64, size/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}

// process is a group of goroutines that can be killed.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start runs work in the background until it is killed.
func start(work func(context.Context) error) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = work(ctx)
	}()
	return p
}

func (p *process) kill() error {
	p.cancel()
	<-p.done
	return p.err
}

// startFastpath takes the flow table over as a restarted process does, and serves.
func (n *node) startFastpath() error {
	flows, found, err := conntrack.Map(n.slots, n.tags)
	if err != nil {
		return err
	}
	flows.SharePorts()
	counters, err := counter.Create(filepath.Join(n.stateDir, "counters"), 1)
	if err != nil {
		return err
	}
	counters.Set(counter.FlowCapacity, uint64(flows.Room()))
	counters.Set(counter.Restored, uint64(found.Flows))
	w := worker.New(worker.Config{
		Port: n.port, Pipeline: pipeline.New(pipeline.Config{Flows: flows}), Snapshot: &n.tables,
		Counters: counters.Worker(0), SweepSlots: conntrack.RoundSlots(flowSlots),
	})
	n.flows.Store(&flows.Reader)
	n.serving.Store(true)
	n.running = start(func(ctx context.Context) error {
		follower := start(func(context.Context) error { return n.follow(ctx, flows, counters) })
		err := w.Run(ctx)
		n.serving.Store(false)
		return errors.Join(err, follower.kill(), w.Conserved(), counters.Close())
	})
	return nil
}

func (n *node) killFastpath() error { return n.running.kill() }

// lookEvery is how often the snapshot file is looked at.
const lookEvery = 2 * time.Millisecond

// follow puts each new snapshot file into use. Old ones stay mapped: a lookup of the
// network's goroutine may still be in them.
func (n *node) follow(ctx context.Context, flows *conntrack.Table, counters *counter.File) error {
	path := filepath.Join(n.stateDir, "snapshot")
	var seen os.FileInfo
	for ctx.Err() == nil {
		if st, err := os.Stat(path); err == nil && (seen == nil || !os.SameFile(st, seen)) {
			seen = st
			s, err := table.Open(path)
			if err != nil {
				return fmt.Errorf("simulated fast path: %w", err)
			}
			n.tables.Store(s)
			flows.SetHalfOpenMax(int(s.Settings().HalfOpenMax))
			counters.Set(counter.Generation, s.Generation())
			counters.Set(counter.InUseSince, uint64(time.Now().UnixNano()))
		}
		counters.Set(counter.Flows, uint64(flows.Len()))
		counters.Set(counter.HalfOpen, uint64(flows.HalfOpen()))
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
	return nil
}

// claim does what the claim programs do with a frame that comes in on a device: it punts
// frames of registered flows and to VIPs, and reports false for all others. Without a
// fast path, claimed frames are gone.
func (n *node) claim(device string, frame []byte) bool {
	s, flows := n.tables.Load(), n.flows.Load()
	id := portOf(s, device)
	if id == 0 {
		return false
	}
	var p packet.Packet
	if p.Parse(frame) != packet.OK {
		return false
	}
	punt := packet.Punt{Port: id, Why: packet.PuntFlow}
	if s.IsVIP(0, &p.Dst) {
		punt.Why = packet.PuntVIP
	} else if flows == nil || !known(flows, &p) {
		return false
	}
	n.claimed++
	if n.serving.Load() {
		packet.WritePunt(frame, punt)
		n.port.Deliver(frame)
	}
	return true
}

func known(flows *conntrack.Reader, p *packet.Packet) bool {
	t := conntrack.Tuple{Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort, Protocol: p.Protocol}
	var f conntrack.Flow
	return flows.Lookup(&t, &f)
}

// collect takes what the worker has sent and gives each frame out of the device that it
// is for.
func (n *node) collect(deliver func(frame []byte, device string)) {
	var out [][]byte
	n.port.Collect(func(frame []byte) { out = append(out, append([]byte(nil), frame...)) })
	s := n.tables.Load()
	for _, frame := range out {
		how, id, ok := packet.ReadInject(frame)
		if !ok || s == nil {
			continue
		}
		device := deviceOf(s, id)
		if how != packet.Direct {
			device = "" // the stack routes it
		}
		if device != "" || how != packet.Direct {
			deliver(frame, device)
		}
	}
}

// portOf and deviceOf translate between devices and the ids of the tables. 0 and "" are
// unknown.
func portOf(s *table.Snapshot, device string) uint16 {
	if s == nil {
		return 0
	}
	if device == trunk {
		return table.HostPort
	}
	for _, p := range s.Ports() {
		if p.Device() == device {
			return p.ID
		}
	}
	return 0
}

func deviceOf(s *table.Snapshot, id uint16) string {
	if id == table.HostPort {
		return trunk
	}
	if p := s.Port(id); p != nil {
		return p.Device()
	}
	return ""
}
