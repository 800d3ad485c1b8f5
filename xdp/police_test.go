package xdp

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// limit lets so many packets of each kind through, 0 for all, and the next one an hour
// later: how fast the test runs does not matter.
func (n *node) limit(burst [police.Asks]uint64) {
	for ask, b := range burst {
		n.o.police.allowed.Of[ask] = allowance{}
		if b > 0 {
			n.o.police.allowed.Of[ask] = allowance{Cost: uint64(time.Hour), Depth: b * uint64(time.Hour)}
		}
	}
	n.o.police.allowed.Any = 1
}

// sends are packets of one kind that come in one after the other.
type sends struct {
	what   string
	at     *ebpf.Program
	in     skb
	frame  func(i int) []byte
	passes int // of them go to Go, and the next is policed
	port   uint16
	ask    police.Ask
}

func fixed(frame []byte) func(int) []byte { return func(int) []byte { return frame } }

// police runs the packets and one more, which is dropped and counted for its port.
func (n *node) police(t *testing.T, s sends) {
	t.Helper()
	for i := range s.passes {
		if got := n.run(t, s.at, s.frame(i), s.in); got.Counts["punted"].Packets != 1 {
			t.Fatalf("%s: packet %d of %d: %+v, want it punted", s.what, i+1, s.passes, got.Counts)
		}
	}
	before := n.policed(s.port, s.ask)
	frame := s.frame(s.passes)
	check(t, n.run(t, s.at, frame, s.in), refused(frame, reason.Policed))
	if got := n.policed(s.port, s.ask) - before; got != 1 {
		t.Errorf("%s: %d packets are counted for port %d as %s, want 1", s.what, got, s.port, s.ask)
	}
}

func (n *node) policed(port uint16, ask police.Ask) uint64 {
	for _, p := range n.o.Policed() {
		if p.Port == port {
			return p.Packets[ask]
		}
	}
	return 0
}

func (n *node) policeTest(t *testing.T) (pod, other, up, host func(what string, frame func(int) []byte, passes int, ask police.Ask) sends) {
	at := func(p *ebpf.Program, ifindex int, port uint16) func(string, func(int) []byte, int, police.Ask) sends {
		return func(what string, frame func(int) []byte, passes int, ask police.Ask) sends {
			return sends{what, p, skb{Ifindex: uint32(ifindex)}, frame, passes, port, ask}
		}
	}
	return at(n.o.bpf.FromPod, n.pod, podID), at(n.o.bpf.FromPod, n.other, otherID),
		at(n.o.bpf.FromUplink, n.uplink, uplinkID), at(n.o.bpf.FromHost, 1, table.HostPort)
}

// TestPolice: a port that asks for more than it may loses what is too much, by name; other
// ports, and what the port asks of another kind, do not notice.
func TestPolice(t *testing.T) {
	n := laneNode(t)
	pod, other, _, host := n.policeTest(t)
	syn := func(src string) []byte { return from(src, "10.96.0.1", 6, tcp(1000, 80)) }
	flow := func() []byte { return laneTCP.there(ack, "x") }
	n.install(t, laneTCP)
	must(t, n.o.SetLane(false))

	n.limit([police.Asks]uint64{police.New: 3})
	n.police(t, pod("a pod that opens flows", fixed(syn("10.1.0.2")), 3, police.New))
	n.police(t, other("another pod", fixed(syn("10.1.0.3")), 3, police.New))
	n.police(t, host("the node itself", fixed(syn("10.1.0.1")), 3, police.New))
	for range 5 {
		if got := n.run(t, n.o.bpf.FromPod, flow(), skb{Ifindex: uint32(n.pod)}); got.Counts["punted"].Packets != 1 {
			t.Fatalf("a packet of a flow of the pod that is policed: %+v, want it punted", got.Counts)
		}
	}

	n.limit([police.Asks]uint64{police.Flow: 2})
	n.police(t, pod("a flow that Go carries", fixed(flow()), 2, police.Flow))
	n.police(t, other("replies of a flow that Go carries", fixed(laneTCP.back(ack, "x")), 2, police.Flow))

	n.limit([police.Asks]uint64{police.Again: 2})
	must(t, n.o.SetLane(true))
	must(t, n.o.SyncGenerations(n.tables(t, func(c *table.Contents) { c.Frontends[0].Generation++ })))
	n.police(t, pod("a flow whose Service has changed", fixed(flow()), 2, police.Again))

	n.limit([police.Asks]uint64{police.New: 3}) // the pod's are used up
	frame := laneTCP.there(synFlag, "")
	check(t, n.run(t, n.o.bpf.FromPod, frame, skb{Ifindex: uint32(n.pod)}), refused(frame, reason.Policed))

	n.o.Allow(police.Limits{})
	for _, b := range [][]byte{syn("10.1.0.2"), flow()} {
		if got := n.run(t, n.o.bpf.FromPod, b, skb{Ifindex: uint32(n.pod)}); got.Counts["punted"].Packets != 1 {
			t.Errorf("with nothing limited: %+v, want it punted", got.Counts)
		}
	}
}

const synFlag = packet.FlagSYN

// TestPolicePrefixes: behind an uplink each source prefix has its own allowance, and all of
// them together have four.
func TestPolicePrefixes(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	_, _, up, _ := n.policeTest(t)
	syn := func(src string) []byte { return from(src, "10.96.0.1", 6, tcp(1000, 80)) }
	syn6 := func(src string) []byte { return from(src, "fd96::1", 6, tcp(1000, 80)) }
	many := func(make func(string) []byte, src ...string) func(int) []byte {
		return func(i int) []byte { return make(src[i%len(src)]) }
	}
	n.limit([police.Asks]uint64{police.New: 3})
	n.police(t, up("many addresses of one /24", many(syn, "192.0.2.1", "192.0.2.99", "192.0.2.200"), 3, police.New))
	n.police(t, up("the /24 next to it", many(syn, "192.0.3.1", "192.0.3.2"), 3, police.New))
	n.police(t, up("many networks of one /48", many(syn6, "2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3:9::1"), 3, police.New))
	n.police(t, up("the /48 next to it, and with it the uplink", many(syn6, "2001:db8:2::1"), 3, police.New))
	frame := syn("198.51.100.1")
	check(t, n.run(t, n.o.bpf.FromUplink, frame, skb{Ifindex: uint32(n.uplink)}), refused(frame, reason.Policed))
	if got := n.policed(uplinkID, police.New); got != 5 {
		t.Errorf("%d packets are counted for the uplink, want 5", got)
	}
}

// TestPoliceEgress: what the node's own stack answers counts for the node, not for the
// port that it leaves by.
func TestPoliceEgress(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	reply := from("10.1.0.1", "10.1.0.2", 6, tcp(8080, 2000))
	n.limit([police.Asks]uint64{police.New: 2}) // a SYN is what tcp makes
	n.police(t, sends{"replies of the node", n.o.bpf.ToPort, skb{Ifindex: uint32(n.pod)}, fixed(reply), 2, table.HostPort, police.New})
}

// TestPoliceSegments: a packet that is cut into many on its way costs as many.
func TestPoliceSegments(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	pod, _, _, _ := n.policeTest(t)
	s := pod("a large packet", fixed(from("10.1.0.2", "10.96.0.1", 6, append(tcp(1000, 80), make([]byte, 1000)...))), 1, police.New)
	s.in.GSOSegs, s.in.GSOSize = 10, 100
	n.limit([police.Asks]uint64{police.New: 10})
	n.police(t, s)
}

// TestPoliceTime: the allowance comes back as time passes.
func TestPoliceTime(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	pod, _, _, _ := n.policeTest(t)
	frame := from("10.1.0.2", "10.96.0.1", 17, udp(1000, 53))
	n.limit([police.Asks]uint64{police.New: 1})
	n.police(t, pod("datagrams", fixed(frame), 1, police.New))
	n.o.police.ports[podID].Of[police.New].Until -= uint64(time.Hour) // an hour later
	n.police(t, pod("datagrams an hour later", fixed(frame), 1, police.New))
}

// TestPoliceForgets: a port that comes to mean another device begins anew, other ports do
// not; and another process reads the same counts.
func TestPoliceForgets(t *testing.T) {
	bpffs := mountBPF(t)
	if _, err := readPoliced(bpffs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first start: %v, want that there is none", err)
	}
	n := newNode(t, open(t, bpffs))
	pod, other, _, _ := n.policeTest(t)
	n.limit([police.Asks]uint64{police.New: 1})
	n.police(t, pod("a pod", fixed(from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))), 1, police.New))
	n.police(t, other("another pod", fixed(from("10.1.0.3", "10.96.0.1", 6, tcp(1000, 80))), 1, police.New))
	want := []Policed{{Port: otherID, Packets: [police.Asks]uint64{1}}, {Port: podID, Packets: [police.Asks]uint64{1}}}
	read, err := readPoliced(bpffs)
	must(t, err)
	if d := cmp.Diff(want, read); d != "" {
		t.Errorf("as another process reads it (-want +got)\n%s", d)
	}
	ports := n.ports()
	for i := range ports {
		if ports[i].ID == podID {
			ports[i].Ifindex = uint32(veth(t, "tnew"))
		}
	}
	must(t, n.o.SyncPorts(ports))
	if d := cmp.Diff(want[:1], n.o.Policed()); d != "" {
		t.Errorf("with another device (-want +got)\n%s", d)
	}
}

// TestAllow: a limit in packets per second is a cost in nanoseconds, and a burst of any
// size lets at least a millisecond's worth through.
func TestAllow(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.o.Allow(police.Limits{PerSecond: [police.Asks]uint32{police.New: 10_000, police.Again: 1 << 20}, Burst: 256})
	want := allowances{Any: 1, Of: [police.Asks]allowance{
		police.New:   {Cost: 100_000, Depth: 25_600_000},
		police.Flow:  {Depth: 1_000_000},
		police.Again: {Cost: 953, Depth: 1_000_000},
	}}
	if d := cmp.Diff(want, *n.o.police.allowed); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	n.o.Allow(police.Limits{})
	if n.o.police.allowed.Any != 0 {
		t.Error("the programs go on looking with nothing limited")
	}
}
