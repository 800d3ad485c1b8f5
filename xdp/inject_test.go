package xdp

import (
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestInject: what becomes of a frame that Go sends, by what it asks for and by the kind of
// port that it names.
func TestInject(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	payload := from("10.1.0.3", "10.1.0.2", 6, tcp(80, 1000))
	inject := func(how packet.Inject, port uint16) []byte {
		f := append([]byte{}, payload...)
		copy(f, lace0MAC[:])
		packet.WriteInject(f, how, port)
		return f
	}
	done := func(verdict int, frame []byte, mark uint32) outcome {
		return outcome{verdict, frame, mark, once(frame, "injected")}
	}
	lost := func(frame []byte, r reason.Reason, more ...string) outcome {
		return outcome{dropped, frame, 0, once(frame, append(more, r.String())...)}
	}
	toUplink := inject(packet.Stack, uplinkID)
	from := [6]byte(toUplink[6:12])
	hop := [6]byte{2, 9, 9, 9, 9, 9}
	hopping := func(how packet.Inject, port uint16) []byte { return toNode(inject(how, port), hop) }
	short := ethernet(0x0806, []byte{1})

	for _, c := range []struct {
		does  string
		frame []byte
		want  outcome
	}{
		{"direct to a pod: delivered with the addresses of its last hop", inject(packet.Direct, podID), done(redirect, withMACs(payload, podMAC, podGateway), 0)},
		{"direct to the node: up its stack on lace0", inject(packet.Direct, table.HostPort), done(next, inject(packet.Direct, table.HostPort), 0)},
		{"direct to an uplink: marked, so that its egress lets it by", inject(packet.Direct, uplinkID), done(redirect, inject(packet.Direct, uplinkID), skipOnce)},
		{"back to the stack from a pod: as the pod sent it, and marked", inject(packet.Stack, podID), done(redirect, withMACs(payload, podGateway, podMAC), skipOnce)},
		{"back to the stack from an uplink: to the uplink's own address, and marked", toUplink, done(redirect, withMACs(payload, uplinkMAC, from), skipOnce)},
		{"back to the stack from the node: there is no other way", inject(packet.Stack, table.HostPort), lost(inject(packet.Stack, table.HostPort), reason.UnallocatedVIP, "injected")},
		{"resumed to a pod: out of its device, to the next hop in the frame, and marked", hopping(packet.Resume, podID), done(redirect, withMACs(payload, hop, podGateway), skipOnce)},
		{"resumed to an uplink: out of its device, to the next hop in the frame, and marked", hopping(packet.Resume, uplinkID), done(redirect, withMACs(payload, hop, uplinkMAC), skipOnce)},
		{"resumed to the node: there is no other way", inject(packet.Resume, table.HostPort), lost(inject(packet.Resume, table.HostPort), reason.UnallocatedVIP, "injected")},
		{"a port that the tables do not have", inject(packet.Direct, 5), lost(inject(packet.Direct, 5), reason.UnknownPortID)},
		{"port 0", inject(packet.Direct, 0), lost(inject(packet.Direct, 0), reason.UnknownPortID)},
		{"a port beyond the map", inject(packet.Stack, 0xffff), lost(inject(packet.Stack, 0xffff), reason.UnknownPortID)},
		{"a wish that is none", inject(3, podID), lost(inject(3, podID), reason.ForeignFrame)},
		{"a frame that the kernel's side sent", onTrunk(payload, 0x50, 1, podID), lost(onTrunk(payload, 0x50, 1, podID), reason.ForeignFrame)},
		{"a frame of anybody", payload, lost(payload, reason.ForeignFrame)},
		{"a frame of hardly more than a header", short, lost(short, reason.ForeignFrame)},
	} {
		t.Run(c.does, func(t *testing.T) {
			check(t, n.run(t, n.o.bpf.FromGo, c.frame, skb{Ifindex: 1}), c.want)
		})
	}
}

// TestMarkedOnLace0: what the lane sends up the node's own stack passes where frames from Go
// are expected, and the mark is gone afterwards.
func TestMarkedOnLace0(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	frame := from("10.96.0.1", "10.1.0.1", 6, tcp(80, 1000))
	check(t, n.run(t, n.o.bpf.FromGo, frame, skb{Ifindex: 1, Mark: skipOnce}), outcome{next, frame, 0, map[string]Count{}})
	check(t, n.run(t, n.o.bpf.FromGo, frame, skb{Ifindex: 1, Mark: skipOnce + 1}), outcome{dropped, frame, skipOnce + 1, once(frame, reason.ForeignFrame.String())})
}

// TestToGo: on lace1 only what a claim program sent goes on, and only to a socket.
func TestToGo(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	const drop = 1 // XDP_DROP
	payload := from("10.1.0.2", "10.96.0.1", 6, tcp(1000, 80))
	for does, c := range map[string]struct {
		frame []byte
		want  reason.Reason
	}{
		"a punted frame without a socket is lost for want of a worker": {onTrunk(payload, 0x50, 1, podID), reason.NoWorker},
		"a frame as Go sends them is foreign":                          {onTrunk(payload, 0x49, 0, podID), reason.ForeignFrame},
		"a frame of anybody is foreign":                                {payload, reason.ForeignFrame},
		"MLD is foreign":                                               {ip6("::", "ff02::16", 58, make([]byte, 8)), reason.ForeignFrame},
		"a frame of a header alone is foreign":                         {payload[:14:14], reason.ForeignFrame},
	} {
		t.Run(does, func(t *testing.T) {
			before, err := n.o.Counters()
			must(t, err)
			opts := ebpf.RunOptions{Data: c.frame, DataOut: make([]byte, 2000)}
			verdict, err := n.o.bpf.ToGo.Run(&opts)
			must(t, err)
			after, err := n.o.Counters()
			must(t, err)
			check(t, outcome{int(verdict), opts.DataOut, 0, grown(before, after)}, outcome{drop, c.frame, 0, once(c.frame, c.want.String())})
		})
	}
}
