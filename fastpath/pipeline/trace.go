package pipeline

import (
	"fmt"
	"strings"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// Step is one step on a packet's way, in plain words.
type Step struct {
	Name string // parse, port, flow, source, frontend, choose, rewrite, forward, answer, verdict
	Note string
}

// Trace collects the steps of one call of Process, for `lace explain`. A nil *Trace
// collects nothing and costs a comparison per step; a real one allocates.
type Trace struct{ Steps []Step }

func (t *Trace) add(name, format string, args ...any) {
	t.Steps = append(t.Steps, Step{Name: name, Note: fmt.Sprintf(format, args...)})
}

// note adds a step without values; every other step has a method of its own, so that
// nothing is converted or formatted when there is no trace.
func (t *Trace) note(name, text string) {
	if t != nil {
		t.add(name, "%s", text)
	}
}

func (t *Trace) parsed(p *packet.Packet, o packet.Outcome) {
	if t != nil {
		t.addParsed(p, o)
	}
}

func (t *Trace) addParsed(p *packet.Packet, o packet.Outcome) {
	switch o {
	case packet.OK:
		t.add("parse", "%s from %s to %s%s, %d bytes", packet.ProtocolName(p.Protocol),
			endpoint(p.Src, p.SrcPort), endpoint(p.Dst, p.DstPort), flagNames(p), p.End-p.L3)
	case packet.NoPorts:
		t.add("parse", "%s from %s to %s, no ports", packet.ProtocolName(p.Protocol), p.Src, p.Dst)
	case packet.NotIP:
		t.add("parse", "not an IP packet")
	case packet.Truncated:
		t.add("parse", "the packet ends inside a header")
	default:
		t.add("parse", "the headers contradict each other or the length of the frame")
	}
}

func (t *Trace) port(in *table.Port, punt packet.Punt) {
	if t != nil {
		t.addPort(in, punt)
	}
}

func (t *Trace) addPort(in *table.Port, punt packet.Punt) {
	if in == nil {
		t.add("port", "port %d is not in the tables", punt.Port)
		return
	}
	way := "in on"
	if punt.Egress {
		way = "from the node's stack, on its way out of"
	}
	t.add("port", "came %s port %d (%s), network %d", way, in.ID, portName(in), in.Network)
}

func (t *Trace) flow(f *conntrack.Flow) {
	if t != nil {
		t.addFlow(f)
	}
}

func (t *Trace) addFlow(f *conntrack.Flow) {
	direction := "client to backend"
	if f.Flags&conntrack.FlagReply != 0 {
		direction = "backend to client"
	}
	t.add("flow", "registered, %s: frontend %d, backend %d", direction, f.Frontend, f.Backend)
}

func (t *Trace) frontend(fe *table.Frontend, set table.Set, outside bool) {
	if t != nil {
		t.addFrontend(fe, set, outside)
	}
}

func (t *Trace) addFrontend(fe *table.Frontend, set table.Set, outside bool) {
	from := "inside"
	if outside {
		from = "outside"
	}
	t.add("frontend", "%s %s in network %d; usable backends for a client %s the cluster: %d",
		endpoint(fe.Addr, fe.Port), packet.ProtocolName(fe.Protocol), fe.Network, from, set.Count)
}

func (t *Trace) choice(b *table.Backend, how string, among int) {
	if t != nil {
		t.addChoice(b, how, among)
	}
}

func (t *Trace) addChoice(b *table.Backend, how string, among int) {
	t.add("choose", "backend %d, %s, %s, one of %d", b.ID, endpoint(b.Addr, b.Port), how, among)
}

func (t *Trace) rewrite(f *conntrack.Flow) {
	if t != nil {
		t.addRewrite(f)
	}
}

func (t *Trace) addRewrite(f *conntrack.Flow) {
	t.add("rewrite", "from %s to %s", endpoint(f.Rewrite.Src, f.Rewrite.SrcPort), endpoint(f.Rewrite.Dst, f.Rewrite.DstPort))
}

func (t *Trace) delivery(how packet.Inject, out *table.Port) {
	if t != nil {
		t.addDelivery(how, out)
	}
}

func (t *Trace) addDelivery(how packet.Inject, out *table.Port) {
	switch {
	case how == packet.Stack:
		t.add("forward", "to the node's own stack, as if it had come in on port %d (%s)", out.ID, portName(out))
	case how == packet.Resume:
		t.add("forward", "goes on out of port %d (%s), as the node's stack wanted", out.ID, portName(out))
	case out.Kind == table.PortHost:
		t.add("forward", "to the node itself, up its stack from lace0")
	default:
		t.add("forward", "out of port %d (%s)", out.ID, portName(out))
	}
}

func (t *Trace) answered(r reason.Reason, p *packet.Packet, out *table.Port) {
	if t != nil {
		t.addAnswered(r, p, out)
	}
}

func (t *Trace) addAnswered(r reason.Reason, p *packet.Packet, out *table.Port) {
	what := "an ICMP port unreachable in the name of the VIP"
	switch {
	case r == reason.PacketTooBig:
		what = "an ICMP error that names the MTU of the way out"
	case r == reason.TimeExceeded:
		what = "an ICMP error that the time to live is used up"
	case p.Protocol == packet.ProtocolTCP:
		what = "a TCP reset in the name of the VIP"
	case p.Family == 6:
		what = "an ICMPv6 port unreachable in the name of the VIP"
	}
	way := fmt.Sprintf("back out of port %d (%s)", out.ID, portName(out))
	if out.Kind == table.PortHost {
		way = "to the node itself, up its stack from lace0"
	}
	t.add("answer", "%s, %s", what, way)
}

func (t *Trace) verdict(r reason.Reason) {
	if t != nil {
		t.addVerdict(r)
	}
}

func (t *Trace) addVerdict(r reason.Reason) {
	t.add("verdict", "%s, reason %s: %s", verdictOf(r), r, r.Help())
}

func endpoint(a packet.Addr, port uint16) string {
	if a.Is4() {
		return fmt.Sprintf("%s:%d", a, port)
	}
	return fmt.Sprintf("[%s]:%d", a, port)
}

func portName(p *table.Port) string {
	kind := map[table.PortKind]string{table.PortHost: "host", table.PortPod: "pod", table.PortUplink: "uplink"}[p.Kind]
	return strings.TrimSpace(kind + " " + p.Device())
}

func flagNames(p *packet.Packet) string {
	if p.Protocol != packet.ProtocolTCP {
		return ""
	}
	out := ""
	for i, name := range []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG"} {
		if p.Flags&(1<<i) != 0 {
			out += " " + name
		}
	}
	return out
}
