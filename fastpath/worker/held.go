package worker

import (
	"errors"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/table"
)

// sendHeld fetches the fragments that waited for the frame that was decided last, and puts
// each into a frame of its own.
func (w *Worker) sendHeld(tables *table.Snapshot, now int64) {
	for more := true; more; {
		f := &w.taken[0]
		if w.port.Take(w.taken[:]) == 0 {
			w.pipeline.Abandon()
			return
		}
		w.counters.Add(counter.Taken, 1)
		length, r := w.pipeline.Next(tables, f.Bytes, now, nil)
		f.Bytes = f.Bytes[:min(length, cap(f.Bytes))]
		w.carryOut(f, r)
		more = r.More
	}
}

// makeRoom sends what is ready when no more fits on the lists: a round has more frames than
// a batch when some of them had waited.
func (w *Worker) makeRoom() {
	if len(w.sending.frames) < batchSize && len(w.spent) < batchSize {
		return
	}
	if err := w.settle(); err != nil {
		w.fault = errors.Join(w.fault, err)
	}
}
