package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/load/bpf"
)

// A SYN without options: its IPv4 length, the word with the length of its TCP header and its
// flags, and its window.
const (
	synLength = 40
	synStart  = 0x5002
	synWindow = 0xffff
)

// FrameLength is a frame of 64 bytes on the wire, without its check sequence.
const FrameLength = 60

// Sources of a Flows.
const (
	flowsPerAddress = 1 << 15
	// SourceAddresses is how many addresses the generator may use, from Flows.From on.
	SourceAddresses = 64
	firstPort       = 16384
)

// Flows says which flows to make: of UDP, or with SYN of TCP, one SYN each time.
type Flows struct {
	SYN         bool
	From        netip.Addr // first source address; SourceAddresses of them belong to the sender
	To          netip.AddrPort
	Destination [6]byte // Ethernet address of the next hop
	Source      [6]byte
	First       int // number of the first flow; 2^15 of them share a source address
	Count       int // a power of two, at most 2^21 with First
}

// plan is struct plan of bpf/load.c.
type plan struct {
	MACs         [12]byte
	TargetPort   [2]byte
	FirstPort    uint16
	Target       [4]byte
	FirstAddress uint32
	FirstFlow    uint32
	Mask         uint32
	Next         uint32
	IPSum        uint32
	Sum          uint32
	SYN          uint32
	Made         uint64
}

func (f *Flows) plan() (*plan, error) {
	switch {
	case !f.From.Is4() || !f.To.Addr().Is4():
		return nil, fmt.Errorf("frames from %s to %s: IPv4 addresses are needed", f.From, f.To)
	case f.Count < 1 || f.Count&(f.Count-1) != 0:
		return nil, fmt.Errorf("%d flows: want a power of two", f.Count)
	case f.First < 0 || f.First+f.Count > SourceAddresses*flowsPerAddress:
		return nil, fmt.Errorf("flows %d to %d: there are %d", f.First, f.First+f.Count-1, SourceAddresses*flowsPerAddress)
	}
	from := f.From.As4()
	p := &plan{
		TargetPort: big(f.To.Port()), FirstPort: firstPort, Target: f.To.Addr().As4(),
		FirstAddress: binary.BigEndian.Uint32(from[:]), FirstFlow: uint32(f.First), Mask: uint32(f.Count - 1),
	}
	copy(p.MACs[:6], f.Destination[:])
	copy(p.MACs[6:], f.Source[:])
	length, protocol := uint16(FrameLength-14), uint16(unix.IPPROTO_UDP)
	if f.SYN {
		p.SYN, length, protocol = 1, synLength, unix.IPPROTO_TCP
		p.Sum = half(synStart) + half(synWindow)
	} else {
		p.Sum = half(length - 20)
	}
	// The constant part of both sums, as little-endian halves, as the program adds them.
	p.IPSum = half(0x4500) + half(length) + half(0x4000) + half(64<<8|protocol) + halves(p.Target)
	p.Sum += halves(p.Target) + half(protocol) + half(length-20) + half(f.To.Port())
	return p, nil
}

// half is a 16-bit field as a little-endian machine loads it.
func half(v uint16) uint32 { return uint32(v<<8 | v>>8) }

func halves(a [4]byte) uint32 {
	return uint32(binary.LittleEndian.Uint16(a[:2])) + uint32(binary.LittleEndian.Uint16(a[2:]))
}

// Frames makes frames inside the kernel and transmits them on a device, 64 at a time.
type Frames struct {
	space   *Space
	call    testRun
	hold    *hold
	objects bpf.LoadObjects
}

// OpenFrames prepares a generator on a device. The device's peer must take redirected
// frames: see SetOffload.
func OpenFrames(s *Space, device string) (*Frames, error) {
	index, err := s.Index(device)
	if err != nil {
		return nil, err
	}
	g := &Frames{space: s}
	if err := bpf.LoadLoadObjects(&g.objects, nil); err != nil {
		return nil, fmt.Errorf("load the programs of a generator: %w", err)
	}
	if g.hold, err = holdDispatcher(g.objects.Make); err != nil {
		return nil, errors.Join(err, g.objects.Close())
	}
	g.call = newTestRun(g.objects.Make.FD(), index)
	return g, nil
}

// Close ends the generator.
func (g *Frames) Close() error { return errors.Join(g.hold.close(), g.objects.Close()) }

// Use sets the flows to make from now on.
func (g *Frames) Use(f Flows) error {
	p, err := f.plan()
	if err != nil {
		return err
	}
	if err := g.objects.Plans.Put(uint32(0), p); err != nil {
		return fmt.Errorf("set the flows of a generator: %w", err)
	}
	return nil
}

// made is the number of frames made by Use's flows.
func (g *Frames) made() (uint64, error) {
	var p plan
	if err := g.objects.Plans.Lookup(uint32(0), &p); err != nil {
		return 0, fmt.Errorf("read a generator's counter: %w", err)
	}
	return p.Made, nil
}

// make transmits n frames and returns how many it made: fewer when a signal came. It must
// run on a thread inside the device's namespace.
func (g *Frames) make(n int) (int, error) {
	before, err := g.made()
	if err != nil {
		return 0, err
	}
	switch errno := g.call.run(n); errno {
	case 0:
		return n, nil
	case unix.EINTR:
		after, err := g.made()
		return int(after - before), err
	default:
		return 0, fmt.Errorf("make frames in %s: %w", g.space.name, errno)
	}
}
