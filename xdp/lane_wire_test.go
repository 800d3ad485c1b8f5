package xdp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// transferred is how much goes each way in one transfer.
const transferred = 4 << 20

var lastPort atomic.Uint32

// freshPort is a client port that no connection of the process has had, which could still
// be in TIME_WAIT.
func (l *laneNet) freshPort() uint16 { return uint16(20000 + lastPort.Add(1)) }

// station is where a socket of a test lives: a far end, or the node itself (nil).
type station = *end

func at(s station, f func() error) error {
	if s == nil {
		return f()
	}
	return s.ns.do(f)
}

// stations are those of a laneNet by the address that they have in the decided flow.
func (l *laneNet) stations(a places) map[string]station {
	return map[string]station{a.pod: l.toPod, a.other: l.toOther, a.outside: l.toOut, a.node: nil, a.self: nil}
}

// transfer moves random bytes both ways over TCP, through the installed flow from the
// handshake on, and reports what differs from doing so without Go. It returns what the lane
// has done, by direction.
func (l *laneNet) transfer(t *testing.T, a places, d decided) (there, back Count) {
	t.Helper()
	fwd, rev := l.install(t, d)
	defer l.flows.Delete(&fwd)
	where := l.stations(a)
	before, err := l.o.Counters()
	must(t, err)

	var server net.Listener
	must(t, at(where[d.backend], func() (err error) {
		server, err = net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(d.backend), d.pair.backendPort).String())
		return err
	}))
	defer server.Close()
	answers, asked := payload(1), payload(2)
	served := make(chan error, 1)
	go func() {
		c, err := server.Accept()
		if err != nil {
			served <- err
			return
		}
		served <- exchange(c, answers, asked)
	}()
	var c net.Conn
	must(t, at(where[d.client], func() (err error) {
		local := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(d.client), d.pair.clientPort))
		dialer := net.Dialer{LocalAddr: local, Timeout: patience}
		c, err = dialer.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr(d.vip), d.vipPort).String())
		return err
	}))
	if err := errors.Join(exchange(c, asked, answers), <-served); err != nil {
		t.Fatal(err)
	}
	l.closes(t, &fwd, &rev)

	after, err := l.o.Counters()
	must(t, err)
	l.noPunts(t, before, after, CauseSYN)
	diff := func(r reason.Reason) Count {
		return Count{after.Reasons[r].Packets - before.Reasons[r].Packets, after.Reasons[r].Bytes - before.Reasons[r].Bytes}
	}
	there, back = diff(reason.Established), diff(reason.Reply)
	if there.Bytes < transferred || back.Bytes < transferred {
		t.Errorf("the lane moved %+v and %+v, less than was sent", there, back)
	}
	return there, back
}

func payload(seed uint64) []byte {
	b := make([]byte, transferred)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	r.Read(b)
	return b
}

// exchange sends one payload while it receives the other, and closes the connection.
func exchange(c net.Conn, send, want []byte) error {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(4 * patience)); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(send)
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	got, err := io.ReadAll(c)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes arrived that are not the %d sent", len(got), len(want))
	}
	return nil
}

// closes waits until both directions note the FINs that passed in the lane.
func (l *laneNet) closes(t *testing.T, fwd, rev *conntrack.Flow) {
	t.Helper()
	var f, r conntrack.Flow
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !l.flows.Lookup(&fwd.Tuple, &f) || !l.flows.Lookup(&rev.Tuple, &r) {
			t.Fatal("the flow is gone")
		}
		if f.State&r.State&conntrack.StateFIN != 0 {
			return
		}
	}
	t.Errorf("states %#x and %#x, want a FIN in both", f.State, r.State)
}

// noPunts reports punts for other causes than those, and packets that were dropped.
func (l *laneNet) noPunts(t *testing.T, before, after Counters, but Cause) {
	t.Helper()
	for c := range before.Punts {
		if n := after.Punts[c].Packets - before.Punts[c].Packets; n > 0 && Cause(c) != but {
			t.Errorf("%d packets went to Go: %v", n, Cause(c))
		}
	}
	for r := range before.Reasons {
		what := reason.Reason(r)
		if n := after.Reasons[r].Packets - before.Reasons[r].Packets; n > 0 && what.Class() == reason.ClassDrop && what != reason.ForeignFrame {
			t.Errorf("%d packets were dropped: %v", n, what)
		}
	}
}

// liveFlows are the ways through the lane that real sockets take, by client and backend.
func liveFlows(a places) map[string]decided {
	flow := func(client, backend string, clientPort, backendPort uint16, source string) decided {
		return decided{pair{client: client, vip: a.vip, backend: backend, vipPort: 80, backendPort: 8080, protocol: packet.ProtocolTCP}, clientPort, backendPort, source}
	}
	return map[string]decided{
		"pod to pod":                       flow(a.pod, a.other, podID, otherID, ""),
		"other pod to pod":                 flow(a.other, a.pod, otherID, podID, ""),
		"pod to itself":                    flow(a.pod, a.pod, podID, podID, ""),
		"other pod to itself":              flow(a.other, a.other, otherID, otherID, ""),
		"outside to pod":                   flow(a.outside, a.other, uplinkID, otherID, ""),
		"pod to another node":              flow(a.pod, a.outside, podID, uplinkID, ""),
		"other pod to another node":        flow(a.other, a.outside, otherID, uplinkID, ""),
		"pod to a backend on the node":     flow(a.pod, a.node, podID, table.HostPort, ""),
		"other pod to one on the node":     flow(a.other, a.node, otherID, table.HostPort, ""),
		"outside to a backend on the node": flow(a.outside, a.self, uplinkID, table.HostPort, ""),
		"node to pod":                      flow(a.node, a.other, table.HostPort, otherID, ""),
		"node to another node":             flow(a.node, a.outside, table.HostPort, uplinkID, ""),
		"node to itself":                   flow(a.node, a.self, table.HostPort, table.HostPort, a.vip),
	}
}

// TestLaneTransfer: a TCP connection of real sockets runs through the lane from its
// handshake to its end, bit-identical, with offloads, whatever the two sides are, whatever
// the pod's device is and whatever the node's reverse path filter.
func TestLaneTransfer(t *testing.T) {
	for name, bridge := range map[string]bool{"point to point": false, "bridge": true} {
		t.Run(name, func(t *testing.T) {
			l := newLaneNet(t, bridge)
			// IPv6 has no such filter.
			for _, c := range []struct{ family, filter string }{{"IPv4", "0"}, {"IPv4", "1"}, {"IPv4", "2"}, {"IPv6", "0"}} {
				for _, device := range []string{"all", "tpod", "tother", "tup.7"} {
					must(t, sysctl("net/ipv4/conf/"+device+"/rp_filter", c.filter))
				}
				for does, d := range liveFlows(families[c.family]) {
					d.pair.clientPort = l.freshPort()
					t.Run(fmt.Sprintf("%s, %s, rp_filter %s", does, c.family, c.filter), func(t *testing.T) {
						l.transfer(t, families[c.family], d)
					})
				}
			}
		})
	}
}

// TestLaneOffloads: what the sender left to do and what the receiver has merged passes as it
// is: large packets stay large, with a checksum that is partial, complete or none.
func TestLaneOffloads(t *testing.T) {
	l := newLaneNet(t, false)
	for _, c := range []struct {
		does                     string
		segment, checksum, merge uint32
		large                    bool
	}{
		{"large packets with partial checksums", 1, 1, 0, true},
		{"packets that the uplink merges", 0, 1, 1, true},
		{"packets with whole checksums that the uplink merges", 0, 0, 1, true},
		{"packets with whole checksums", 0, 0, 0, false},
		{"packets with partial checksums", 0, 1, 0, false},
	} {
		l.offloads(t, l.toOut, "tup.7", c.segment, c.checksum, c.merge)
		for family, a := range families {
			for does, d := range map[string]decided{"to a pod": liveFlows(a)["outside to pod"], "to the node": liveFlows(a)["outside to a backend on the node"]} {
				d.pair.clientPort = l.freshPort()
				t.Run(fmt.Sprintf("%s %s over %s", c.does, does, family), func(t *testing.T) {
					there, _ := l.transfer(t, a, d)
					if mean := there.Bytes / there.Packets; (mean > 1514) != c.large {
						t.Errorf("a packet has %d bytes on average; large: want %v", mean, c.large)
					}
				})
			}
		}
	}
}

// TestLaneDatagrams: UDP, also in segments, arrives without Go from its first packet on,
// whether the node's devices finish checksums or not.
func TestLaneDatagrams(t *testing.T) {
	l := newLaneNet(t, false)
	for _, checksum := range []uint32{1, 0} {
		for _, device := range []string{"tpod", "tother", "tup.7"} {
			must(t, setOffload(device, getTxChecksum, setTxChecksum, checksum))
		}
		for family, a := range families {
			for does, d := range liveFlows(a) {
				d.pair.clientPort, d.protocol = l.freshPort(), packet.ProtocolUDP
				t.Run(fmt.Sprintf("%s over %s, checksum offload %d", does, family, checksum), func(t *testing.T) { l.datagrams(t, a, d) })
			}
		}
	}
}

func (l *laneNet) datagrams(t *testing.T, a places, d decided) {
	t.Helper()
	fwd, _ := l.install(t, d)
	defer l.flows.Delete(&fwd)
	where := l.stations(a)
	before, err := l.o.Counters()
	must(t, err)
	var client, server *net.UDPConn
	listen := func(c **net.UDPConn, s station, addr string, port uint16) {
		must(t, at(s, func() (err error) {
			*c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), port)))
			return err
		}))
		t.Cleanup(func() { (*c).Close() })
		must(t, (*c).SetDeadline(time.Now().Add(patience)))
	}
	listen(&client, where[d.client], d.client, d.pair.clientPort)
	listen(&server, where[d.backend], d.backend, d.pair.backendPort)
	vip := netip.AddrPortFrom(netip.MustParseAddr(d.vip), d.vipPort)
	seen := netip.AddrPortFrom(netip.MustParseAddr(d.seen()), d.pair.clientPort)
	for _, segment := range []int{0, 1000} {
		question, answer := payload(3)[:3001], payload(4)[:2999]
		if segment == 0 {
			question, answer = question[:1001], answer[:1200]
		}
		say(t, client, vip, question, segment)
		hear(t, server, seen, question)
		say(t, server, seen, answer, segment)
		hear(t, client, vip, answer)
	}
	after, err := l.o.Counters()
	must(t, err)
	but := Cause(0)
	if d.client == a.node && d.backend == a.self {
		but = CauseHeader // segments
	}
	l.noPunts(t, before, after, but)
}

// say sends b, in segments where segment is not 0.
func say(t *testing.T, c *net.UDPConn, to netip.AddrPort, b []byte, segment int) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		must(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, segment))
	}))
	_, err = c.WriteToUDPAddrPort(b, to)
	must(t, err)
}

// hear receives datagrams until they add up to want.
func hear(t *testing.T, c *net.UDPConn, from netip.AddrPort, want []byte) {
	t.Helper()
	var got []byte
	b := make([]byte, 4096)
	for len(got) < len(want) {
		n, sender, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatalf("%d of %d bytes arrived: %v", len(got), len(want), err)
		}
		if sender != from {
			t.Errorf("the sender is %v, want %v", sender, from)
		}
		got = append(got, b[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes arrived than were sent")
	}
}
