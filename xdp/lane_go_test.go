package xdp

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/nat"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp/xsk"
)

// serve stands in for Go's workers: it forwards what is punted by the flow table, as the
// pipeline does, until the test ends. Packets without a flow are not expected.
func (w *wire) serve(t *testing.T) {
	t.Helper()
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !stop.Load() {
			if err := w.serveOnce(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	t.Cleanup(func() {
		stop.Store(true)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (w *wire) serveOnce() error {
	idle := true
	for _, s := range w.sockets {
		s.Complete()
		var batch [1]xsk.Frame
		if s.Receive(batch[:]) == 0 {
			continue
		}
		idle = false
		if err := w.forward(w.umem.Bytes(batch[0])); err != nil {
			return err
		}
		if n, err := s.Transmit(batch[:]); n != 1 || err != nil {
			return fmt.Errorf("transmit: %d, %v", n, err)
		}
		if err := s.Kick(); err != nil {
			return err
		}
		s.Refill(1)
	}
	if idle {
		time.Sleep(time.Millisecond) // two sockets are polled in turn
	}
	return nil
}

func (w *wire) forward(frame []byte) error {
	punt, ok := packet.ReadPunt(frame)
	var p packet.Packet
	if !ok || p.Parse(frame) != packet.OK {
		return fmt.Errorf("a frame came to Go that cannot be read: %x", frame)
	}
	var f conntrack.Flow
	tuple := conntrack.Tuple{Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort, Protocol: p.Protocol}
	if !w.flows.Lookup(&tuple, &f) || !nat.Apply(&p, &f.Rewrite) {
		return fmt.Errorf("a packet came to Go whose flow is not there: %+v", tuple)
	}
	w.flows.Touch(&f, conntrack.StateOf(p.Flags), uint32(time.Now().Unix()))
	how, port := packet.Direct, f.Target
	if port == table.HostPort && f.Flags&conntrack.FlagReply == 0 && punt.Port != table.HostPort {
		how, port = packet.Stack, punt.Port
	}
	packet.WriteInject(frame, how, port)
	return nil
}
