package worker

import (
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/port"
)

// busy is a port at which a frame arrives while the worker sends.
type busy struct {
	*port.Memory
	late []byte
}

func (p *busy) Flush() error {
	if p.late != nil {
		p.Deliver(p.late)
		p.late = nil
	}
	return p.Memory.Flush()
}

// TestWhatComesWhileTheWorkerSendsIsNotOvertaken: a flow is handed over by the round behind
// which nothing waits, for what waits may be of that flow.
func TestWhatComesWhileTheWorkerSendsIsNotOvertaken(t *testing.T) {
	n, p := newNode(t, 1), &busy{Memory: memory(t, 8)}
	w := n.worker(0, p)
	answer := punted(frame.UDP("10.244.1.3:8080", "10.244.1.2:4000", "answer"), 3)
	for _, c := range []struct {
		sentence       string
		comes, meets   []byte
		handedOverThen bool
	}{
		{"a flow begins with Go", request(4000), nil, false},
		{"an answer hands over nothing of the client's", answer, nil, false},
		{"while another packet of the client's has come Go goes on", request(4000), request(4000), false},
		{"it is handed over when Go has sent that too", nil, nil, true},
	} {
		if c.comes != nil && !p.Deliver(c.comes) {
			t.Fatal("no room for a frame")
		}
		p.late = c.meets
		if err := w.round(p.Receive(w.batch[:])); err != nil {
			t.Fatal(err)
		}
		tuple := conntrack.Tuple{Src: addr("10.244.1.2"), Dst: addr("10.96.0.10"), SrcPort: 4000, DstPort: 80, Protocol: packet.ProtocolUDP}
		var f conntrack.Flow
		if !n.flows.Lookup(&tuple, &f) || (f.Mode == conntrack.ModeLane) != c.handedOverThen {
			t.Errorf("%s: mode %d", c.sentence, f.Mode)
		}
	}
	if err := w.Conserved(); err != nil {
		t.Error(err)
	}
}
