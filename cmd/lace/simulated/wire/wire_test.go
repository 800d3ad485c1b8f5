package wire

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/packet"
)

// cable joins hosts and may lose or spoil frames.
type cable struct {
	mu    sync.Mutex
	queue []func()
	wake  chan struct{}
	hosts []*Host
	spoil func(n int, frame []byte) []byte // nil result: lost
	n     int
}

func newCable(t *testing.T) *cable {
	c := &cable{wake: make(chan struct{}, 1)}
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case <-c.wake:
			case <-done:
				return
			}
			for f := c.next(); f != nil; f = c.next() {
				f()
			}
		}
	}()
	return c
}

func (c *cable) next() (f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 {
		f, c.queue = c.queue[0], c.queue[1:]
	}
	return f
}

func (c *cable) carry(from *Host, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.spoil != nil {
		if frame = c.spoil(c.n, frame); frame == nil {
			return
		}
	}
	for _, h := range c.hosts {
		if h != from {
			c.queue = append(c.queue, func() { h.Receive(frame) })
		}
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

var (
	client4, client6 = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	server4, server6 = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")
)

func (c *cable) pair() (client, server *Host) {
	client, server = NewHost("client", client4, client6, c.carry), NewHost("server", server4, server6, c.carry)
	c.hosts = []*Host{client, server}
	server.Listen(80)
	return client, server
}

// Two hosts on one cable speak as two machines would: greeting and echo over TCP and UDP,
// both families, small and larger than a segment; nothing arrives that should not.
func TestEcho(t *testing.T) {
	c := newCable(t)
	client, server := c.pair()
	for _, to := range []netip.Addr{server4, server6} {
		for network, sizes := range map[string][]int{"tcp": {0, 1, 1200, 50000}, "udp": {0, 1, 1300}} {
			for _, size := range sizes {
				r := traffic.Request{Network: network, To: netip.AddrPortFrom(to, 80), Bytes: size}
				if a := traffic.DialBy(t.Context(), client.Connect, r); a.Outcome != traffic.OK || a.Server != "server" || a.Client != a.Local {
					t.Errorf("%s to %s, %d bytes: %s, seen as %s from %s", network, to, size, a, a.Client, a.Local)
				}
			}
		}
	}
	if wrong := append(client.Wrong(), server.Wrong()...); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// Lost frames are sent again.
func TestLossIsRepaired(t *testing.T) {
	c := newCable(t)
	c.spoil = func(n int, frame []byte) []byte {
		if n%4 == 0 {
			return nil
		}
		return frame
	}
	client, _ := c.pair()
	r := traffic.Request{Network: "tcp", To: netip.AddrPortFrom(server4, 80), Bytes: 5000, Timeout: 1e10}
	if a := traffic.DialBy(t.Context(), client.Connect, r); a.Outcome != traffic.OK {
		t.Error(a)
	}
}

// A bit that changed on the way is noticed by a checksum, in every part of the packet that
// one covers.
func TestSpoiledFramesAreNotAccepted(t *testing.T) {
	for _, to := range []netip.Addr{server4, server6} {
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP} {
			from := client4
			if to.Is6() {
				from = client6
			}
			s := Segment{Src: netip.AddrPortFrom(from, 7), Dst: netip.AddrPortFrom(to, 80), Protocol: protocol, Payload: []byte("hello")}
			frame := s.Frame()
			if _, err := ReadFrame(frame); err != nil {
				t.Fatalf("protocol %d to %s, untouched: %v", protocol, to, err)
			}
			first := packet.EthernetLen
			if to.Is6() {
				first += 8 // version, class, label, length and hop limit are not covered
			}
			for i := first; i < len(frame); i++ {
				frame[i] ^= 0x10
				if _, err := ReadFrame(frame); err == nil {
					t.Errorf("protocol %d to %s: byte %d changed unnoticed", protocol, to, i)
				}
				frame[i] ^= 0x10
			}
		}
	}
}

// A port without server refuses TCP by a reset; a quoted datagram refuses UDP.
func TestRefused(t *testing.T) {
	c := newCable(t)
	client, _ := c.pair()
	r := traffic.Request{Network: "tcp", To: netip.AddrPortFrom(server4, 81)}
	if a := traffic.DialBy(t.Context(), client.Connect, r); a.Outcome != traffic.Refused {
		t.Errorf("TCP: %s", a)
	}
	for _, to := range []netip.Addr{server4, server6} {
		c.spoil = func(_ int, frame []byte) []byte {
			var p packet.Packet
			p.Parse(frame)
			answer := make([]byte, packet.MaxAnswer)
			n := packet.WriteUnreachable(answer, &p)
			go client.Receive(bytes.Clone(answer[:n]))
			return nil
		}
		r = traffic.Request{Network: "udp", To: netip.AddrPortFrom(to, 80)}
		if a := traffic.DialBy(t.Context(), client.Connect, r); a.Outcome != traffic.Refused {
			t.Errorf("UDP to %s: %s", to, a)
		}
	}
}

// Silence is a timeout, and a stream outlives it.
func TestSilence(t *testing.T) {
	c := newCable(t)
	var mu sync.Mutex
	silent := true
	c.spoil = func(_ int, frame []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if silent {
			return nil
		}
		return frame
	}
	client, _ := c.pair()
	for _, network := range []string{"tcp", "udp"} {
		r := traffic.Request{Network: network, To: netip.AddrPortFrom(server6, 80), Timeout: 2e8}
		if a := traffic.DialBy(t.Context(), client.Connect, r); a.Outcome != traffic.Timeout {
			t.Errorf("%s: %s", network, a)
		}
	}
	set := func(s bool) {
		mu.Lock()
		defer mu.Unlock()
		silent = s
	}
	set(false)
	s, err := traffic.Stream{Request: traffic.Request{Network: "tcp", To: netip.AddrPortFrom(server4, 80)}, Count: 3}.StartBy(t.Context(), client.Connect)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "30 turns", func() bool { return s.Progress().Turns >= 30 })
	set(true)
	within(t, "a gap", func() bool { return s.Progress().Gap >= 2e8 })
	set(false)
	turns := s.Progress().Turns
	within(t, "30 turns after the gap", func() bool { return s.Progress().Turns >= turns+30 })
	if p := s.Stop(); p.Broken != 0 || p.Gap < 2e8 {
		t.Errorf("%+v", p)
	}
}

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 10 s", what)
		}
	}
}

// Frames of any content are refused, never a panic.
func FuzzReadFrame(f *testing.F) {
	for _, to := range []netip.Addr{server4, server6} {
		s := Segment{Src: netip.AddrPortFrom(to, 7), Dst: netip.AddrPortFrom(to, 80), Protocol: packet.ProtocolTCP, Payload: []byte("hello")}
		f.Add(s.Frame())
		s.Protocol = packet.ProtocolUDP
		frame := s.Frame()
		f.Add(frame)
		var p packet.Packet
		p.Parse(frame)
		answer := make([]byte, packet.MaxAnswer)
		f.Add(answer[:packet.WriteUnreachable(answer, &p)])
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		s, err := ReadFrame(frame)
		if err == nil && (!s.Src.IsValid() || !s.Dst.IsValid()) {
			t.Errorf("accepted without addresses: %+v", s)
		}
	})
}
