package pipeline

import (
	"bytes"
	"sync"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
)

// TestFirstPacketsRace: two workers meet packets of one new flow at the same instant.
// None is lost, and both go to the same backend.
func TestFirstPacketsRace(t *testing.T) {
	const flows = 800 // well below half of the table
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "web:8080", "other:8080", "remote:8080", "remote2:8080")
	f := frame.UDP(w.endpoint("client:1").String(), w.endpoint("vip:80").String(), "first")
	var frames, went [2][flows][]byte
	for i := range flows {
		g := f
		g.Src = portOf(f.Src, uint16(1000+i))
		for worker := range 2 {
			frames[worker][i] = append(make([]byte, 0, 2048), g.Bytes()...)
		}
	}
	var start, done sync.WaitGroup
	start.Add(2)
	for worker := range 2 {
		done.Go(func() {
			pl := New(Config{Flows: w.flows})
			start.Done()
			start.Wait()
			for i, b := range frames[worker] {
				r := pl.Process(w.snapshot, b, packet.Punt{Port: portIDs["client"]}, int64(w.clock), nil)
				if r.Verdict != Forward || r.Reason != reason.NewFlow && r.Reason != reason.Established {
					t.Errorf("worker %d, flow %d: %s, reason %s", worker, i, r.Verdict, r.Reason)
					return
				}
				went[worker][i] = b[30:34] // destination
			}
		})
	}
	done.Wait()
	for i := range flows {
		if !bytes.Equal(went[0][i], went[1][i]) {
			t.Fatalf("flow %d went to %v and to %v", i, went[0][i], went[1][i])
		}
	}
	if w.flows.Len() != flows {
		t.Errorf("%d flows, want %d", w.flows.Len(), flows)
	}
}
