package pipeline

import (
	"encoding/binary"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestNoAllocation: whatever a packet is, deciding about it allocates nothing.
func TestNoAllocation(t *testing.T) {
	cases := []struct {
		sentence string
		given    func(*world)
		src, dst string
		protocol uint8
		flags    uint8
		is       reason.Reason
		fresh    bool // another source port for each packet
	}{
		{"an established packet", serving("vip", "web:8080"), "client:4000", "vip:80", packet.ProtocolUDP, 0, reason.Established, false},
		{"an established segment", serving("vip", "web:8080"), "client:4000", "vip:80", packet.ProtocolTCP, syn, reason.Established, false},
		{"a new flow", serving("vip", "web:8080"), "client:4000", "vip:80", packet.ProtocolUDP, 0, reason.NewFlow, true},
		{"a new connection", serving("vip", "web:8080"), "client:4000", "vip:80", packet.ProtocolTCP, syn, reason.NewFlow, true},
		{"a new flow of an outside client to a remote backend", serving("vip", "remote:8080"), "outside:4000", "vip:80", packet.ProtocolUDP, 0, reason.NewFlow, true},
		{"a refused datagram", empty("vip", table.Refuse, table.Refuse), "client:4000", "vip:80", packet.ProtocolUDP, 0, reason.NoEndpoints, true},
		{"a refused connection", empty("vip", table.Refuse, table.Refuse), "client:4000", "vip:80", packet.ProtocolTCP, syn, reason.NoEndpoints, true},
		{"a packet that is not ours", serving("vip", "web:8080"), "client:4000", "other:80", packet.ProtocolUDP, 0, reason.NotClaimed, true},
		{"a drop", serving("vip", "web:8080"), "other:4000", "vip:80", packet.ProtocolUDP, 0, reason.SpoofedSource, true},
	}
	for _, c := range cases {
		for _, family := range []int{4, 6} {
			t.Run(c.sentence, func(t *testing.T) {
				w := newWorld(t, family, c.protocol)
				w.contents.Settings.AnswersPerSecond, w.contents.Settings.Lane = 1<<30, 1
				c.given(w)
				src, dst := w.endpoint(c.src).String(), w.endpoint(c.dst).String()
				f := frame.UDP(src, dst, "payload")
				if c.protocol == packet.ProtocolTCP {
					f = frame.TCP(src, dst, c.flags, "")
				}
				raw, b := f.Bytes(), make([]byte, 2048)
				port, at := uint16(4000), 34+20*(family-4)/2
				punt := packet.Punt{Port: portIDs["client"]}
				if c.src == "outside:4000" {
					punt.Port = portIDs["wire"]
				}
				one := func() reason.Reason {
					n := copy(b, raw)
					if c.fresh {
						port++
						binary.BigEndian.PutUint16(b[at:], port)
					}
					w.clock += time.Millisecond
					return w.pipeline.Process(w.snapshot, b[:n], punt, int64(w.clock), nil).Reason
				}
				one()
				if r := one(); r != c.is {
					t.Fatalf("reason is %s, want %s", r, c.is)
				}
				if n := testing.AllocsPerRun(100, func() { one() }); n != 0 {
					t.Errorf("%v allocations", n)
				}
			})
		}
	}
}

func TestExpireDoesNotAllocate(t *testing.T) {
	w := newWorld(t, 4, packet.ProtocolUDP)
	w.serve("vip", "web:8080")
	w.play(0, &opens)
	if n := testing.AllocsPerRun(100, func() { w.pipeline.Expire(w.snapshot, int64(w.clock), 1000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
