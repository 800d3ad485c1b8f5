package oracle_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/bench/oracle"
	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/affinity"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/table"
)

// Ports of the node of every case: the node itself, the uplink, and from 3 on its pods.
const hostPort, uplink, firstPod = 1, 2, 3

// lace is the real thing: objects are resolved and compiled, and packets go through the
// fast path.
type lace struct {
	t        testing.TB
	wiring   model.Attachments
	compiler *compile.Compiler
	present  map[model.Name]bool
	tables   *table.Snapshot
	pipeline *pipeline.Pipeline
	clock    time.Duration
	client   uint16 // client's port of the last packet
}

func newLace(t testing.TB, c *oracle.Cluster, stack bool, seed uint64) *lace {
	flows, err := conntrack.New(1 << 9)
	if err != nil {
		t.Fatal(err)
	}
	l := &lace{
		t: t, wiring: wiring(c, stack), compiler: compile.New(nil), present: map[model.Name]bool{}, clock: time.Hour, client: 20000,
		pipeline: pipeline.New(pipeline.Config{Flows: flows, Affinity: affinity.New(1024), Rand: rand.New(rand.NewPCG(seed, 7))}),
	}
	settings := table.DefaultSettings()
	settings.AnswersPerSecond = 1 << 20
	l.compiler.SetSettings(settings)
	l.compiler.SetAttachments(l.wiring)
	l.load(c)
	return l
}

// wiring is what the node's links say: one port for every two pod addresses, one for the
// wire.
func wiring(c *oracle.Cluster, stack bool) model.Attachments {
	delivery := model.Direct
	if stack {
		delivery = model.Stack
	}
	a := model.Attachments{Ports: []model.Port{
		{ID: hostPort, Kind: model.PortHost, Device: "lace0", Ifindex: 2, MTU: 1500, Addresses: c.Own},
		{ID: uplink, Kind: model.PortUplink, Device: "eth0", Ifindex: 3, MTU: 1500, Delivery: delivery},
	}}
	for i := 0; i < len(c.Pods); i += 2 {
		id := uint16(firstPod + i/2)
		a.Ports = append(a.Ports, model.Port{ID: id, Kind: model.PortPod, Device: "veth", Ifindex: 10 + int(id), MTU: 1500, Delivery: delivery, Addresses: c.Pods[i : i+2]})
	}
	for _, p := range []string{"0.0.0.0/0", "::/0"} {
		a.Routes = append(a.Routes, model.Route{Prefix: netip.MustParsePrefix(p), Port: uplink})
	}
	a.Node4, a.Node6 = c.Own[0], c.Own[1]
	return a
}

// load compiles what the cluster is now, on top of what it was.
func (l *lace) load(c *oracle.Cluster) {
	o := resolve.NewObjects()
	nodes := make(map[netip.Addr]bool)
	for _, n := range c.Nodes {
		o.PutNode(n.Name, n)
		for _, a := range resolve.NodeAddresses(n) {
			nodes[a] = true
		}
	}
	for _, s := range c.Services {
		o.PutService(model.Name{Namespace: s.Namespace, Name: s.Name}, s)
	}
	for _, s := range c.Slices {
		o.PutSlice(model.Name{Namespace: s.Namespace, Name: s.Name}, s)
	}
	here, _ := o.Here(c.Here)
	here.NodePorts = resolve.NodePorts{}.Of(here, &l.wiring)
	here.Aliases = resolve.Own(&l.wiring)
	l.compiler.SetNodes(nodes)
	now := make(map[model.Name]bool)
	for _, n := range o.Names() {
		if s, _ := o.Resolve(n, here); s != nil {
			l.compiler.SetService(s)
			now[n] = true
		}
	}
	for n := range l.present {
		if !now[n] {
			l.compiler.DeleteService(n)
		}
	}
	l.present = now
	generation := uint64(1)
	if l.tables != nil {
		generation += l.tables.Generation()
	}
	b, _, err := l.compiler.Snapshot(generation, time.Unix(1, 0))
	if err != nil {
		l.t.Fatal(err)
	}
	if l.tables, err = table.Load(slices.Clone(b)); err != nil {
		l.t.Fatal(err)
	}
}

// flow is what was sent: the same again belongs to it.
type flow struct {
	oracle.Packet
	port uint16 // of the client
}

// answer is what became of a packet.
type answer struct {
	class  oracle.Class
	reason string
	to     netip.AddrPort // when forwarded
	source netip.Addr
}

var classOf = map[pipeline.Verdict]oracle.Class{
	pipeline.Forward: oracle.Forward, pipeline.Answer: oracle.Refuse, pipeline.Drop: oracle.Drop, pipeline.Pass: oracle.Pass,
}

// begin sends the first packet of something new.
func (l *lace) begin(p oracle.Packet) (flow, answer) {
	l.client++
	f := flow{p, l.client}
	return f, l.send(f, packet.FlagSYN)
}

// send sends a packet of a flow; flags are those of TCP.
func (l *lace) send(f flow, flags uint8) (a answer) {
	l.clock += time.Millisecond
	src, dst := netip.AddrPortFrom(f.Source, f.port).String(), f.To.String()
	var b frame.Frame
	switch f.Protocol {
	case corev1.ProtocolUDP:
		b = frame.UDP(src, dst, "hello")
	case corev1.ProtocolSCTP: // an INIT chunk: RFC 9260, section 3.3.2
		b = frame.SCTP(src, dst, "\x01\x00\x00\x14\x00\x00\x00\x01\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x01")
	default:
		b = frame.TCP(src, dst, flags, "")
	}
	bytes := slices.Grow(b.Bytes(), 512)
	punt := packet.Punt{Port: l.portOf(f.Packet), Why: packet.PuntVIP}
	if !packet.WritePunt(bytes, punt) {
		l.t.Fatal("no punt")
	}
	r := l.pipeline.Process(l.tables, bytes, punt, int64(l.clock), nil)
	l.pipeline.Settle(true, int64(l.clock))
	a.class, a.reason = classOf[r.Verdict], r.Reason.String()
	if r.Verdict == pipeline.Forward {
		out, err := frame.Decode(bytes[:r.Len])
		if err == nil {
			err = frame.Check(bytes[:r.Len])
		}
		if err != nil {
			l.t.Fatal(err)
		}
		a.to, a.source = out.Dst, out.Src.Addr()
	}
	return a
}

func (l *lace) portOf(p oracle.Packet) uint16 {
	switch p.From {
	case oracle.Node:
		return hostPort
	case oracle.Outside:
		return uplink
	}
	for _, port := range l.wiring.Ports {
		if port.ID >= firstPod && slices.Contains(port.Addresses, p.Source) {
			return port.ID
		}
	}
	l.t.Fatalf("nobody has %s", p.Source)
	return 0
}

// eligible is what the tables let a client choose from.
func (l *lace) eligible(p oracle.Packet) (out []netip.AddrPort) {
	a := packet.AddrFrom(p.To.Addr())
	f := l.tables.Frontend(0, &a, map[corev1.Protocol]uint8{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132}[p.Protocol], p.To.Port())
	if f == nil {
		return nil
	}
	set := f.Inside
	if p.From == oracle.Outside {
		set = f.Outside
	}
	for _, id := range l.tables.Set(set) {
		b := l.tables.Backend(id)
		out = append(out, netip.AddrPortFrom(b.Addr.Netip(), b.Port))
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}
