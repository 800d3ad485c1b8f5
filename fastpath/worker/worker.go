// Package worker is the loop that joins a port to a pipeline.
//
// It owns the order of a round: receive a batch, read the clock once, take the tables
// once, decide about each frame, send, give back, count, sweep. One worker serves one
// port on one goroutine, and shares nothing with other workers but the flow table.
//
// It must never lose a frame silently: every frame received is sent or given back, and
// has exactly one reason in the counters, a fragment that was held when it has been waited
// for. It must never spin: without frames it sleeps in
// the port until one comes.
//
// Cost: per batch one clock read, one load of the tables and the port's system calls;
// per frame what the pipeline costs and one addition. No allocation.
//
// Flow: Port.Receive → Pipeline.Process → Port.Transmit or Port.Recycle → Port.Flush.
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/fastpath/port"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

const (
	// batchSize frames are decided under one clock reading and one set of tables.
	batchSize = 64
	// longestRest bounds a sleep, so that a worker without traffic still sweeps, shows
	// that it is alive, and notices that it is to stop.
	longestRest = 100 * time.Millisecond
	// surveyEvery is how often the port is asked what it lost: a system call.
	surveyEvery = int64(time.Second)
)

// Config says what a worker joins.
type Config struct {
	Port     port.Port
	Pipeline *pipeline.Pipeline
	// Snapshot holds the tables in use; nil inside until there are some.
	Snapshot *atomic.Pointer[table.Snapshot]
	Counters *counter.Block
	// Governor is told how full the port is; nil: nobody.
	Governor *police.Governor
	// SweepSlots is the number of slots of the flow table that this worker walks through
	// for expired flows, round and round; 0 when another worker does.
	SweepSlots int
}

// Worker serves one port. Run belongs to one goroutine; Uses may be called from any.
type Worker struct {
	port     port.Port
	pipeline *pipeline.Pipeline
	snapshot *atomic.Pointer[table.Snapshot]
	counters *counter.Block
	governor *police.Governor
	sweep    sweep
	gather   gather
	seen     port.Stats // of the port, as far as they are counted
	surveyed int64      // when they were counted last

	inUse atomic.Pointer[table.Snapshot]

	lost  func(r reason.Reason, frames, bytes int) // counts what was held and is dropped
	fault error                                    // of sending in the middle of a round

	batch   [batchSize]port.Frame
	taken   [1]port.Frame
	sending outgoing
	spent   []port.Frame // to be given back; backed by an array that no round outgrows
}

// outgoing are the frames of a batch that are to be sent, with what is counted for each
// once the port has taken it.
type outgoing struct {
	frames  []port.Frame
	reasons [batchSize]reason.Reason
	bytes   [batchSize]int
}

// New makes a worker.
func New(c Config) *Worker {
	w := &Worker{
		port: c.Port, pipeline: c.Pipeline, snapshot: c.Snapshot, counters: c.Counters,
		governor: c.Governor,
		sweep:    sweep{slots: c.SweepSlots},
		spent:    make([]port.Frame, 0, 2*batchSize),
	}
	w.sending.frames = make([]port.Frame, 0, batchSize)
	w.lost = w.counters.CountAll
	return w
}

// Run serves the port until ctx is done, which is no error, or the port no longer works.
// Frames in hand are settled before it returns.
func (w *Worker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		n := w.port.Receive(w.batch[:])
		if n == 0 {
			if err := w.rest(); err != nil {
				return err
			}
			continue
		}
		if err := w.round(n); err != nil {
			return err
		}
	}
	now := Now()
	w.surveyed = 0
	w.survey(now)
	w.counters.Write(now)
	return nil
}

// round settles the n frames in hand.
func (w *Worker) round(n int) error {
	now := Now()
	w.gather.drained(now, n)
	w.notice(now, n)
	tables := w.take()
	for i := range w.batch[:n] {
		w.decide(tables, &w.batch[i], now)
	}
	err := errors.Join(w.fault, w.settle())
	w.fault = nil
	w.handOver(w.drained(n), now)
	w.walk(tables, now)
	w.pipeline.Lost(now, w.lost)
	if holes, news := w.pipeline.BlackHoles(); news {
		w.counters.Holes(holes)
	}
	w.release()
	w.survey(now)
	w.counters.Add(counter.Received, n)
	w.counters.Add(counter.Batches, 1)
	w.counters.Publish(now)
	if err != nil {
		return fmt.Errorf("worker: sending: %w", err)
	}
	return nil
}

// notice tells the governor how many frames there were.
func (w *Worker) notice(now int64, n int) {
	waiting, room := 0, batchSize
	if n == len(w.batch) {
		waiting, room = w.port.Backlog()
	}
	w.governor.Note(now, waiting, room)
}

// decide puts one frame on the list of those to send or of those to give back.
func (w *Worker) decide(tables *table.Snapshot, f *port.Frame, now int64) {
	punt, ok := packet.ReadPunt(f.Bytes)
	if !ok {
		w.counters.Add(counter.Strays, 1)
		w.drop(f, reason.ForeignFrame)
		return
	}
	r := w.pipeline.Process(tables, f.Bytes, punt, now, nil)
	w.carryOut(f, r)
	if r.More {
		w.sendHeld(tables, now)
	}
}

// carryOut does with a frame what was decided.
func (w *Worker) carryOut(f *port.Frame, r pipeline.Result) {
	w.makeRoom()
	switch r.Verdict {
	case pipeline.Drop:
		w.drop(f, r.Reason)
		return
	case pipeline.Hold:
		w.counters.Add(counter.Held, 1)
		w.spent = append(w.spent, *f)
		return
	}
	out := &w.sending
	i := len(out.frames)
	out.reasons[i], out.bytes[i] = r.Reason, len(f.Bytes)
	out.frames = append(out.frames, port.Frame{Bytes: f.Bytes[:r.Len], Handle: f.Handle})
}

func (w *Worker) drop(f *port.Frame, why reason.Reason) {
	w.counters.Count(why, len(f.Bytes))
	w.spent = append(w.spent, *f)
}

// settle sends what is to be sent and gives back the rest.
func (w *Worker) settle() error {
	out := &w.sending
	var err error
	sent := w.port.Transmit(out.frames)
	if sent < len(out.frames) {
		// Room comes back when those under way have left.
		err = w.port.Flush()
		sent += w.port.Transmit(out.frames[sent:])
	}
	for i := range out.frames {
		if i < sent {
			w.counters.Count(out.reasons[i], out.bytes[i])
		} else {
			w.drop(&out.frames[i], reason.RingFull)
		}
	}
	w.port.Recycle(w.spent)
	w.counters.Add(counter.Transmitted, sent)
	w.counters.Add(counter.Recycled, len(w.spent))
	out.frames, w.spent = out.frames[:0], w.spent[:0]
	if e := w.port.Flush(); e != nil {
		err = e
	}
	return err
}

// rest does what is due while no frame waits, and sleeps until one does.
func (w *Worker) rest() error {
	now := Now()
	w.notice(now, 0)
	w.handOver(true, now)
	w.walk(w.take(), now)
	w.pipeline.Lost(now, w.lost)
	w.release()
	w.survey(now)
	w.counters.Add(counter.Waits, 1)
	w.counters.Publish(now)
	if err := w.port.Wait(longestRest); err != nil {
		return fmt.Errorf("worker: waiting for frames: %w", err)
	}
	if w.gather.rushed() {
		w.counters.Add(counter.Pauses, 1)
		time.Sleep(pause)
	}
	return nil
}

// drained reports whether the round that took n frames has left none, and none has come since:
// what Go still had of a flow would be overtaken by what the kernel carries.
func (w *Worker) drained(n int) bool {
	if n == len(w.batch) {
		return false
	}
	waiting, _ := w.port.Backlog()
	return waiting == 0
}

// handOver lets the kernel carry the flows that waited until the port was drained.
func (w *Worker) handOver(drained bool, now int64) {
	w.counters.Add(counter.Installed, w.pipeline.Settle(drained, now))
}

// walk removes expired flows from the part of the table that is due.
func (w *Worker) walk(tables *table.Snapshot, now int64) {
	if n := w.sweep.due(now); n > 0 {
		w.counters.Add(counter.Expired, w.pipeline.Expire(tables, now, n))
	}
}

// survey counts what the port has counted since the last time.
func (w *Worker) survey(now int64) {
	if now-w.surveyed < surveyEvery {
		return
	}
	w.surveyed = now
	s := w.port.Stats()
	w.counters.Add(counter.Kicks, int(s.Kicks-w.seen.Kicks))
	w.counters.Add(counter.Overruns, int(s.Dropped-w.seen.Dropped))
	w.seen = s
}

// take loads the tables for one round and shows which, so that nobody unmaps them. The
// second load makes sure that whoever swapped the pointer in between sees it shown.
func (w *Worker) take() *table.Snapshot {
	for {
		s := w.snapshot.Load()
		w.inUse.Store(s)
		if w.snapshot.Load() == s {
			return s
		}
	}
}

func (w *Worker) release() { w.inUse.Store(nil) }

// Uses reports whether the worker may be reading s. After s was swapped out and Uses has
// been false once, it stays false: s may be closed.
func (w *Worker) Uses(s *table.Snapshot) bool { return w.inUse.Load() == s }

// Conserved reports frames that went missing between port and worker, nil when there are
// none. It may be called when Run has returned.
func (w *Worker) Conserved() error {
	received := w.counters.Event(counter.Received) + w.counters.Event(counter.Taken)
	sent, back := w.counters.Event(counter.Transmitted), w.counters.Event(counter.Recycled)
	if received != sent+back {
		return fmt.Errorf("worker: received or took %d frames, sent %d and gave %d back", received, sent, back)
	}
	return w.port.Conserved(0)
}
