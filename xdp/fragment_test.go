package xdp

import (
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// TestFragments: which fragments go to Go. 10.1.0.3 and fd00::3 are backends on this node,
// 10.9.0.3 is one elsewhere, 10.1.0.1 (the node) is one too.
func TestFragments(t *testing.T) {
	n := newNode(t, open(t, mountBPF(t)))
	n.insertFlows(t)
	must(t, n.o.SetBackends([]packet.Addr{mapped("10.1.0.3"), mapped("fd00::3"), mapped("10.9.0.3"), mapped("10.1.0.1")}))
	pod, other := testHook{n.o.bpf.FromPod, n.pod}, testHook{n.o.bpf.FromPod, n.other}
	uplink := testHook{n.o.bpf.FromUplink, n.uplink}
	outOfPod, outOfUplink := testHook{n.o.bpf.ToPort, n.pod}, testHook{n.o.bpf.ToPort, n.uplink}
	const vip, flow, out = packet.PuntVIP, packet.PuntFlow, 0x80
	first := func(src, dst string) []byte { return ip4(src, dst, 17, fragFirst, nil, udp(1000, 53)) }
	later := func(src, dst string) []byte { return ip4(src, dst, 17, fragLater, nil, []byte{1, 2, 3, 4, 5, 6, 7, 8}) }
	first6 := func(src, dst string) []byte {
		return ip6(src, dst, 44, join([]byte{17, 0, 0, 1, 0, 0, 0, 1}, udp(1000, 53)))
	}
	later6 := func(src, dst string) []byte {
		return ip6(src, dst, 44, join([]byte{17, 0, 0, 9, 0, 0, 0, 1}, udp(1000, 53)))
	}
	behind := ip6("fd00::3", "fd00::2", 60, join([]byte{44, 0, 1, 4, 0, 0, 0, 0}, []byte{17, 0, 0, 8, 0, 0, 0, 1}, []byte{1}))
	for _, c := range []struct {
		does  string
		at    testHook
		port  uint16
		frame []byte
		why   uint8
	}{
		{"the first fragment to an address claimed by port goes to Go", pod, podID, first("10.1.0.2", "10.96.0.2"), vip},
		{"so does the first fragment to another port of it, for the others follow it", pod, podID, ip4("10.1.0.2", "10.96.0.2", 17, fragFirst, nil, udp(1000, 54)), vip},
		{"a later fragment to an address claimed by port goes to Go", pod, podID, later("10.1.0.2", "10.96.0.2"), vip},
		{"the first fragment from a backend goes to Go, whatever its ports", other, otherID, first("10.1.0.3", "10.1.0.2"), flow},
		{"a later fragment from a backend goes to Go", other, otherID, later("10.1.0.3", "10.1.0.2"), flow},
		{"the first IPv6 fragment from a backend goes to Go", other, otherID, first6("fd00::3", "fd00::2"), flow},
		{"a later IPv6 fragment from a backend goes to Go", other, otherID, later6("fd00::3", "fd00::2"), flow},
		{"a fragment header behind options is found", other, otherID, behind, flow},
		{"a later fragment from another node's backend goes to Go", uplink, uplinkID, later("10.9.0.3", "10.1.0.2"), flow},
		{"a later fragment from another node's backend to the node's own address goes to Go", uplink, uplinkID, later("10.9.0.3", "10.1.0.1"), flow},
		{"a later fragment of the node's own backend to a pod goes to Go", outOfPod, podID, later("10.1.0.1", "10.1.0.2"), out},
		{"the first fragment of the node's own backend goes to Go", outOfPod, podID, first("10.1.0.1", "10.1.0.2"), out},
		{"a later fragment of the node's own backend to the outside goes to Go", outOfUplink, uplinkID, later("10.1.0.1", "192.0.2.9"), out},
		{"a later fragment of a pod's reply that the stack routes goes to Go", outOfPod, podID, later("10.1.0.3", "10.1.0.2"), out},
		{"a later IPv6 fragment of a pod's reply that the stack routes goes to Go", outOfPod, podID, later6("fd00::3", "fd00::2"), out},
	} {
		t.Run(c.does, func(t *testing.T) {
			want := punted(c.frame, c.port, c.why)
			if c.why == out {
				want = puntedOut(c.frame, c.port)
			}
			check(t, n.run(t, c.at.program, c.frame, skb{Ifindex: uint32(c.at.ifindex)}), want)
		})
	}
	for does, c := range map[string]struct {
		at    testHook
		frame []byte
	}{
		"a fragment between pods that are no backends passes":                      {pod, later("10.1.0.2", "10.1.0.9")},
		"a fragment to a backend that is no reply passes":                          {pod, first("10.1.0.2", "10.1.0.3")},
		"an IPv6 fragment between pods that are no backends passes":                {pod, later6("fd00::2", "fd00::9")},
		"a whole packet from a backend that no flow has passes":                    {other, from("10.1.0.3", "10.1.0.2", 17, udp(1000, 53))},
		"a whole packet in a fragment header from a backend passes":                {other, ip6("fd00::3", "fd00::2", 44, join([]byte{17, 0, 0, 0, 0, 0, 0, 1}, udp(1000, 53)))},
		"a fragment in a backend's name from another pod is the kernel's to judge": {pod, later("10.1.0.3", "10.1.0.2")},
		"a fragment in a local backend's name from the wire is the kernel's too":   {uplink, later("10.1.0.3", "10.1.0.2")},
		"a fragment that leaves a pod's device from no backend passes":             {outOfPod, later("10.1.0.9", "10.1.0.2")},
		"a fragment to a VIP that leaves an uplink passes":                         {outOfUplink, later("10.1.0.9", "10.96.0.1")},
		"the first fragment of a tuple that Go gave to the kernel passes":          {outOfPod, ip4("10.1.0.9", "10.1.0.2", 17, fragFirst, nil, udp(54, 2000))},
	} {
		t.Run(does, func(t *testing.T) {
			check(t, n.run(t, c.at.program, c.frame, skb{Ifindex: uint32(c.at.ifindex)}), untouched(c.frame))
		})
	}
	t.Run("the first fragment of a flow's reply in another pod's name is dropped", func(t *testing.T) {
		frame := ip4("10.1.0.3", "10.1.0.2", 17, fragFirst, nil, udp(8080, 2000))
		check(t, n.run(t, pod.program, frame, skb{Ifindex: uint32(pod.ifindex)}), refused(frame, reason.SpoofedSource))
	})
}

// TestBackendFilter: addresses are added before they are needed, and found by the next
// process.
func TestBackendFilter(t *testing.T) {
	bpffs := mountBPF(t)
	o := open(t, bpffs)
	must(t, o.WidenBackends([]packet.Addr{mapped("10.1.0.3")}))
	must(t, o.WidenBackends([]packet.Addr{mapped("10.1.0.4")}))
	var want filter
	want.add(mapped("10.1.0.3"))
	want.add(mapped("10.1.0.4"))
	if o.backendFilter != want {
		t.Error("the second address has displaced the first")
	}
	must(t, o.Close())
	if o = open(t, bpffs); o.backendFilter != want {
		t.Error("the next process does not know the addresses")
	}
	want = filter{}
	want.add(mapped("10.1.0.5"))
	must(t, o.SetBackends([]packet.Addr{mapped("10.1.0.5")}))
	var got filter
	must(t, o.bpf.BackendFilter.Lookup(uint32(0), &got))
	if got != want {
		t.Error("the kernel's filter is not the one that was set")
	}
}
