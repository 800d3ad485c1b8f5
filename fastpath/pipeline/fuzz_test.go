package pipeline

import (
	"sync"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// FuzzProcess: whatever arrives, wherever it is met, the pipeline decides without a
// panic, verdict and reason agree, and what it sends is a frame of the trunk whose IP
// packet can be parsed again and has right checksums if it had them before. The same
// frame is processed three times, so that flows of it are met as well.
func FuzzProcess(f *testing.F) {
	for _, family := range []int{4, 6} {
		w := newWorld(f, family, packet.ProtocolTCP)
		name := func(s string) string { return w.endpoint(s).String() }
		plain := func(s string) string { return w.endpoint(s + ":0").Addr().String() }
		for _, b := range [][]byte{
			frame.TCP(name("client:4000"), name("vip:80"), syn, "hello").Bytes(),
			frame.TCP(name("client:4000"), name("vip:81"), ack, "").Bytes(),
			frame.UDP(name("outside:4000"), name("vip2:80"), "hello").Bytes(),
			frame.SCTP(name("node:4000"), name("vip:80"), "\x01\x00\x00\x04").Bytes(),
			frame.ICMP(plain("client"), plain("vip"), 8, 0, "ping").Bytes(),
			frame.Raw(plain("client"), plain("vip"), 47, "gre").Bytes(),
		} {
			for port := range uint8(7) {
				f.Add(b, port, false)
			}
			f.Add(b, uint8(2), true)
			f.Add(b[:len(b)-3], uint8(2), false)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, port uint8, egress bool) {
		w := *fuzzed(t)
		flows, err := conntrack.New(64)
		if err != nil {
			t.Fatal(err)
		}
		w.t, w.flows, w.pipeline = t, flows, New(Config{Flows: flows})
		for range 3 {
			in := append(make([]byte, 0, len(b)+64), b...)
			r := w.pipeline.Process(w.snapshot, in, packet.Punt{Port: uint16(port), Egress: egress}, int64(w.clock), nil)
			w.judge(b, in, r)
		}
		if got := w.flows.Len(); got > 1 {
			t.Errorf("one tuple has made %d flows", got)
		}
	})
}

// fuzzed is a node with Services of both families and all sorts of backends, made once.
func fuzzed(t *testing.T) *world {
	once.Do(func() { node = newFuzzed(t) })
	return node
}

var (
	once sync.Once
	node *world
)

func newFuzzed(t *testing.T) *world {
	w := newWorld(t, 4, packet.ProtocolTCP)
	w.contents.Settings.AnswersPerSecond = 1 << 30
	w.serve("vip", "web:8080", "remote:8080", "node:8080")
	w.family = 6
	w.serve6()
	return w
}

// serve6 adds a Service in IPv6 and one of UDP without endpoints.
func (w *world) serve6() {
	w.services["vip-6"] = &service{frontend: table.Frontend{
		ID: 100, Addr: packet.AddrFrom(w.addr("vip")), Port: 80, Protocol: packet.ProtocolTCP, Generation: 1,
	}, inside: []string{"web:8081", "remote:8081"}, outside: []string{"other:8081"}}
	w.services["vip2-udp"] = &service{frontend: table.Frontend{
		ID: 101, Addr: packet.AddrFrom(w.addr("vip2")), Port: 80, Protocol: packet.ProtocolUDP, Generation: 1,
	}}
	for _, b := range []string{"web:8081", "remote:8081", "other:8081"} {
		w.backend(b).Serving = 1
	}
	w.publish()
}

// judge holds a result to what is always true.
func (w *world) judge(before, in []byte, r Result) {
	w.t.Helper()
	if r.Verdict == Hold { // a fragment that waits for the first one of its datagram
		if r.Reason != reason.None || r.Len != 0 || r.Port != 0 {
			w.t.Fatalf("held, and yet %+v", r)
		}
		return
	}
	if r.Reason == reason.None || r.Reason >= reason.Count {
		w.t.Fatalf("reason is %d", r.Reason)
	}
	if r.Verdict != verdictOf(r.Reason) {
		w.t.Fatalf("verdict %s with reason %s of class %s", r.Verdict, r.Reason, r.Reason.Class())
	}
	if r.Verdict == Drop {
		if r.Len != 0 || r.Port != 0 {
			w.t.Fatalf("a drop of %d bytes for port %d", r.Len, r.Port)
		}
		return
	}
	if r.Len < packet.EthernetLen || r.Len > cap(in) {
		w.t.Fatalf("%d bytes in a frame of %d", r.Len, cap(in))
	}
	out := in[:r.Len]
	how, port, ok := packet.ReadInject(out)
	if !ok || how != r.Inject || port != r.Port || w.snapshot.Port(port) == nil {
		w.t.Fatalf("the frame says %d, port %d, %v; the result %d, port %d", how, port, ok, r.Inject, r.Port)
	}
	if r.Verdict == Pass {
		if r.Len != len(before) || string(out[12:]) != string(before[12:]) {
			w.t.Fatalf("a frame that is not ours was changed:\n%x\n%x", before, out)
		}
		return
	}
	var p packet.Packet
	if o := p.Parse(out); o != packet.OK && o != packet.NoPorts {
		w.t.Fatalf("what leaves does not parse (%d): %x", o, out)
	}
	if r.Verdict == Answer || frame.Check(before) == nil {
		if err := frame.Check(out); err != nil {
			w.t.Fatalf("%s, reason %s, sent a frame that is not well formed: %v\nbefore %x\nafter  %x", r.Verdict, r.Reason, err, before, out)
		}
	}
}
