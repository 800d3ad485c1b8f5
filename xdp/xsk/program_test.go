package xsk

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Return values of XDP programs (enum xdp_action of linux/bpf.h).
const xdpDrop = 1

// onlyTestFrames jumps to "other" unless the packet is a test frame. R1 is the context and
// ends up in R6.
func onlyTestFrames() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, 0, asm.Word), // data
		asm.LoadMem(asm.R3, asm.R6, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, MinFrame),
		asm.JGT.Reg(asm.R4, asm.R3, "other"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Half),
		asm.HostTo(asm.BE, asm.R5, asm.Half),
		asm.JNE.Imm(asm.R5, testType, "other"),
	}
}

func drop(label string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol(label),
		asm.Return(),
	}
}

// redirect attaches a program to the device that gives test frames to the socket of the
// queue on which they arrive.
func (s *space) redirect(device string, sockets ...*Socket) *ebpf.Map {
	s.t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 8})
	if err != nil {
		s.t.Fatalf("make an XSKMAP: %v", err)
	}
	s.t.Cleanup(func() { m.Close() })
	code := append(onlyTestFrames(),
		asm.LoadMem(asm.R2, asm.R6, 16, asm.Word), // rx_queue_index
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Imm(asm.R3, xdpDrop),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	)
	s.attach(device, append(code, drop("other")...))
	for _, sock := range sockets {
		if err := m.Put(uint32(sock.Queue()), uint32(sock.FD())); err != nil {
			s.t.Fatalf("put the socket of queue %d into the XSKMAP: %v", sock.Queue(), err)
		}
	}
	return m
}

func (s *space) attach(device string, code asm.Instructions) {
	s.t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: code, License: "GPL"})
	if err != nil {
		s.t.Fatalf("load the XDP program for %s: %+v", device, err)
	}
	s.t.Cleanup(func() { p.Close() })
	index := s.device(device).Attrs().Index
	s.must("attach the XDP program to "+device, func() error {
		l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: index, Flags: link.XDPDriverMode})
		if err == nil {
			s.t.Cleanup(func() { l.Close() })
		}
		return err
	})
}

// counter counts the test frames that arrive at a device and measures, in the kernel, the
// longest time between two of them. It never is the bottleneck.
type counter struct {
	t *testing.T
	m *ebpf.Map
}

const (
	offsetCount = 0
	offsetLast  = 8
	offsetGap   = 16
)

// count attaches a counter to the device. One queue only: it counts without locks.
func (s *space) count(device string) *counter {
	s.t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 24, MaxEntries: 1})
	if err != nil {
		s.t.Fatalf("make the counter: %v", err)
	}
	s.t.Cleanup(func() { m.Close() })
	code := append(onlyTestFrames(),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "other"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R7, offsetCount, asm.DWord),
		asm.LoadMem(asm.R2, asm.R7, offsetLast, asm.DWord),
		asm.StoreMem(asm.R7, offsetLast, asm.R0, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, offsetCount, asm.R1, asm.DWord),
		asm.JEq.Imm(asm.R3, 0, "other"), // the first has no predecessor
		asm.Sub.Reg(asm.R0, asm.R2),
		asm.LoadMem(asm.R4, asm.R7, offsetGap, asm.DWord),
		asm.JLE.Reg(asm.R0, asm.R4, "other"),
		asm.StoreMem(asm.R7, offsetGap, asm.R0, asm.DWord),
	)
	s.attach(device, append(code, drop("other")...))
	return &counter{t: s.t, m: m}
}

func (c *counter) read() (count uint64, gap time.Duration) {
	c.t.Helper()
	var v [24]byte
	if err := c.m.Lookup(uint32(0), &v); err != nil {
		c.t.Fatalf("read the counter: %v", err)
	}
	return binary.NativeEndian.Uint64(v[offsetCount:]), time.Duration(binary.NativeEndian.Uint64(v[offsetGap:]))
}

func (c *counter) arrived() uint64 {
	c.t.Helper()
	n, _ := c.read()
	return n
}

// reset forgets what was counted. Only while nothing arrives.
func (c *counter) reset() {
	c.t.Helper()
	if err := c.m.Put(uint32(0), make([]byte, 24)); err != nil {
		c.t.Fatalf("reset the counter: %v", err)
	}
}
