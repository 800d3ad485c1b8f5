package xdp

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// nothing is a program that passes everything: what a test run itself costs.
func nothing(b *testing.B) *ebpf.Program {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}

// BenchmarkHook measures what a packet costs that is not Lace's, and one that is (claimed),
// by BPF_PROG_TEST_RUN: one CPU, everything in the cache. Subtract "nothing" from each.
func BenchmarkHook(b *testing.B) {
	o := open(b, mountBPF(b))
	w := newNode(b, o)
	for _, c := range []struct {
		name     string
		program  *ebpf.Program
		frame    []byte
		backends filter
	}{
		{"nothing", nothing(b), from("10.1.0.2", "10.1.0.9", 17, udp(1, 2)), filter{}},
		{"pod/udp4", o.bpf.FromPod, from("10.1.0.2", "10.1.0.9", 17, udp(1, 2)), filter{}},
		{"pod/tcp4", o.bpf.FromPod, from("10.1.0.2", "10.1.0.9", 6, tcp(1, 2)), filter{}},
		{"pod/tcp6", o.bpf.FromPod, from("fd00::2", "fd00::9", 6, tcp(1, 2)), filter{}},
		{"pod/arp", o.bpf.FromPod, ethernet(0x0806, make([]byte, 46)), filter{}},
		{"uplink/tcp4", o.bpf.FromUplink, from("192.0.2.9", "10.1.0.2", 6, tcp(1, 2)), filter{}},
		{"egress/tcp4", o.bpf.ToPort, from("192.0.2.9", "10.1.0.2", 6, tcp(1, 2)), filter{}},
		{"claimed/tcp4", o.bpf.FromPod, from("10.1.0.2", "10.96.0.1", 6, tcp(1, 2)), filter{}},
		{"claimed/tcp6", o.bpf.FromPod, from("fd00::2", "fd96::1", 6, tcp(1, 2)), filter{}},
		{"pod/udp4 as if of a backend", o.bpf.FromPod, from("10.1.0.2", "10.1.0.9", 17, udp(1, 2)), everybody()},
		{"egress/tcp4 as if of a backend", o.bpf.ToPort, from("192.0.2.9", "10.1.0.2", 6, tcp(1, 2)), everybody()},
	} {
		ifindex := w.pod
		if c.program == o.bpf.FromUplink {
			ifindex = w.uplink
		}
		b.Run(c.name, func(b *testing.B) {
			must(b, o.setBackends(c.backends))
			opts := ebpf.RunOptions{Data: c.frame, Repeat: uint32(b.N), Context: skb{Ifindex: uint32(ifindex)}}
			b.ResetTimer()
			if _, err := c.program.Run(&opts); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkOpen measures a restart: probe, take over the pins, load the programs.
func BenchmarkOpen(b *testing.B) {
	bpffs := mountBPF(b)
	must(b, open(b, bpffs).Close())
	for b.Loop() {
		must(b, open(b, bpffs).Close())
	}
}
