package traffic

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

// listen starts a server for one test.
func listen(t *testing.T, name string, addr netip.AddrPort) *Server {
	t.Helper()
	s, err := Listen(name, addr)
	if err != nil && addr == loopback6 {
		t.Skipf("no IPv6 on this machine: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A server says its name and the client's address, and echoes every byte.
func TestDialIsAnswered(t *testing.T) {
	for _, at := range []netip.AddrPort{loopback4, loopback6} {
		for _, network := range []string{"tcp", "udp"} {
			for _, size := range []int{0, 1, 9, 1400, 50000} {
				t.Run("", func(t *testing.T) {
					s := listen(t, "web-1", at)
					a := Dial(t.Context(), Request{Network: network, To: s.Addr(), Bytes: size})
					if a.Outcome != OK || a.Server != "web-1" {
						t.Fatalf("%s to %s with %d bytes: %s", network, at, size, a)
					}
					if a.Client != a.Local || a.Local.Addr() != at.Addr() {
						t.Errorf("%s: client %s, local %s, want both the same on %s", network, a.Client, a.Local, at.Addr())
					}
				})
			}
		}
	}
}

// More than the socket buffers hold comes back byte for byte.
func TestLargeEcho(t *testing.T) {
	s := listen(t, "web-1", loopback4)
	if a := Dial(t.Context(), Request{Network: "tcp", To: s.Addr(), Bytes: 16 << 20}); a.Outcome != OK {
		t.Error(a)
	}
}

// One local port calls two servers at the same time.
func TestOneLocalPortForTwoTargets(t *testing.T) {
	one, two := listen(t, "one", loopback4), listen(t, "two", loopback4)
	for _, network := range []string{"tcp", "udp"} {
		from := freePort(t)
		var streams []*RunningStream
		for _, s := range []*Server{one, two} {
			r, err := Stream{Request: Request{Network: network, To: s.Addr(), From: from}}.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, r)
		}
		for i, r := range streams {
			eventually(t, "five turns", func() bool { return r.Progress().Turns >= 5 })
			if p := r.Stop(); p.Broken != 0 {
				t.Errorf("%s, stream %d: %s", network, i, p.First)
			}
		}
	}
}

func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	s, err := Listen("", loopback4)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Addr()
}

// Each way of failing has its own outcome.
func TestOutcomes(t *testing.T) {
	mute, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	cases := []struct {
		name string
		to   netip.AddrPort
		net  string
		want Outcome
	}{
		{"a closed TCP port refuses", freePort(t), "tcp", Refused},
		{"a closed UDP port refuses by ICMP", freePort(t), "udp", Refused},
		{"a socket that never answers is a timeout", mute.LocalAddr().(*net.UDPAddr).AddrPort(), "udp", Timeout},
		{"a server that hangs up before its greeting is closed", scripted(t, ""), "tcp", Closed},
		{"a server that answers nonsense is corrupt", scripted(t, "hello\n"), "tcp", Corrupt},
		{"a server that echoes something else is corrupt", scripted(t, "x\t127.0.0.1:1\n"+strings.Repeat("x", 10)), "tcp", Corrupt},
		{"a target without port is a failure", netip.AddrPortFrom(loopback4.Addr(), 0), "tcp", Failed},
		{"an unknown network is a failure", loopback4, "sctp", Failed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := Dial(t.Context(), Request{Network: c.net, To: c.to, Bytes: 10, Timeout: 300 * time.Millisecond})
			if a.Outcome != c.want || a.Error == "" {
				t.Errorf("got %s, want %s with a text", a, c.want)
			}
		})
	}
}

// scripted is a server that says one thing to each client and closes.
func scripted(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(text))
			c.(*net.TCPConn).CloseWrite()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// A burst makes as many attempts as it was told and counts servers and failures.
func TestBurstCounts(t *testing.T) {
	s := listen(t, "web-1", loopback4)
	b := Burst{Request: Request{Network: "tcp", To: s.Addr()}, Count: 50, Parallel: 4}
	var tally Tally
	b.Run(t.Context(), tally.Add)
	if tally.Attempts != 50 || tally.Servers["web-1"] != 50 || tally.Failed() != 0 {
		t.Errorf("all answered: %+v", tally)
	}
	b.To = freePort(t)
	tally = Tally{}
	b.Run(t.Context(), tally.Add)
	if tally.Attempts != 50 || tally.Outcomes[Refused] != 50 || tally.Failed() != 50 || tally.First == "" {
		t.Errorf("all refused: %+v", tally)
	}
}

// An endless burst goes on until its context ends, and cutting it short is no failure.
func TestEndlessBurst(t *testing.T) {
	s := listen(t, "web-1", loopback4)
	ctx, cancel := context.WithCancel(t.Context())
	b := Burst{Request: Request{Network: "tcp", To: s.Addr()}, Every: time.Millisecond}
	var tally Tally
	b.Run(ctx, func(a Answer) {
		if tally.Add(a); tally.Attempts == 20 {
			cancel()
		}
	})
	if tally.Attempts < 20 || tally.Failed() != 0 {
		t.Errorf("%+v", tally)
	}
}

// A stream counts turns while its server lives, and breaks when the server goes.
func TestStreamBreaksWithItsServer(t *testing.T) {
	s := listen(t, "web-1", loopback4)
	r, err := Stream{Request: Request{Network: "tcp", To: s.Addr()}, Count: 3, Every: time.Millisecond}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "thirty turns", func() bool { return r.Progress().Turns >= 30 })
	if p := r.Progress(); p.Flows != 3 || p.Broken != 0 || p.Servers["web-1"] != 3 {
		t.Errorf("while the server lives: %+v", p)
	}
	s.Close()
	eventually(t, "three broken flows", func() bool { return r.Progress().Broken == 3 })
	if p := r.Stop(); p.First == "" {
		t.Errorf("after the server has gone: %+v", p)
	}
}

// A silence shows as a gap, even while it lasts; a lost datagram is counted and does not
// break a flow.
func TestStreamTimesTheGap(t *testing.T) {
	relay, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	answer := make(chan bool, 1)
	answer <- true
	go selective(relay, answer)
	to := relay.LocalAddr().(*net.UDPAddr).AddrPort()
	r, err := Stream{Request: Request{Network: "udp", To: to}, Every: time.Millisecond}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	eventually(t, "ten turns", func() bool { return r.Progress().Turns >= 10 })
	<-answer
	answer <- false
	eventually(t, "a gap of 300 ms", func() bool { return r.Progress().Gap >= 300*time.Millisecond })
	<-answer
	answer <- true
	turns := r.Progress().Turns
	eventually(t, "turns after the silence", func() bool { return r.Progress().Turns >= turns+5 })
	if p := r.Stop(); p.Lost == 0 || p.Broken != 0 || p.Gap < 300*time.Millisecond {
		t.Errorf("%+v", p)
	}
}

// selective echoes as a Server does as long as the channel holds true.
func selective(c net.PacketConn, answer chan bool) {
	buf := make([]byte, 2048)
	for {
		n, client, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		yes := <-answer
		answer <- yes
		if yes {
			g := Greeting("relay", client.(*net.UDPAddr).AddrPort())
			c.WriteTo(append(g, buf[:n]...), client)
		}
	}
}

// A flow that cannot be opened is an error that says which and why.
func TestStreamThatCannotStart(t *testing.T) {
	_, err := Stream{Request: Request{Network: "tcp", To: freePort(t)}, Count: 2}.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "flow 1 of 2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 10 s", what)
		}
	}
}
