package packet_test

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
)

func BenchmarkParse(b *testing.B) {
	extended := frame.TCP("[fd00::1]:1000", "[fd00::2]:80", packet.FlagACK, "payload")
	extended.Extensions = []frame.Extension{{Type: 60, Body: make([]byte, 6)}, {Type: 43, Body: make([]byte, 6)}}
	for _, c := range []struct {
		name  string
		frame frame.Frame
	}{
		{"TCP-IPv4", frame.TCP("10.0.0.1:1000", "10.0.0.2:80", packet.FlagACK, "payload")},
		{"UDP-IPv4", frame.UDP("10.0.0.1:1000", "10.0.0.2:80", "payload")},
		{"TCP-IPv6", frame.TCP("[fd00::1]:1000", "[fd00::2]:80", packet.FlagACK, "payload")},
		{"TCP-IPv6-extensions", extended},
	} {
		b.Run(c.name, func(b *testing.B) {
			frame := c.frame.Bytes()
			p := new(packet.Packet)
			b.ReportAllocs()
			for b.Loop() {
				if p.Parse(frame) != packet.OK {
					b.Fatal("not parsed")
				}
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	dst := make([]byte, packet.MaxAnswer)
	var tcp, udp packet.Packet
	tcp.Parse(frame.TCP("10.0.0.1:1000", "10.0.0.2:80", packet.FlagSYN, "").Bytes())
	udp.Parse(frame.UDP("[fd00::1]:1000", "[fd00::2]:80", string(make([]byte, 1200))).Bytes())
	b.Run("reset", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if packet.WriteReset(dst, &tcp) == 0 {
				b.Fatal("no answer")
			}
		}
	})
	b.Run("unreachable", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if packet.WriteUnreachable(dst, &udp) == 0 {
				b.Fatal("no answer")
			}
		}
	})
}
