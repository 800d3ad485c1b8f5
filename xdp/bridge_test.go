package xdp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

var (
	bridgeMAC = [6]byte{2, 4, 4, 4, 4, 1}
	bridged   = [6]byte{2, 4, 4, 4, 4, 2}
)

// bridgedPod puts a second pod, 10.1.0.3, behind a bridge: its gateway is the bridge's
// address, its port the veth below.
func (w *wire) bridgedPod(t *testing.T) *end {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = "tbridge", bridgeMAC[:]
	b := &netlink.Bridge{LinkAttrs: attrs}
	must(t, netlink.LinkAdd(b))
	t.Cleanup(func() { _ = netlink.LinkDel(b) })
	ifindex, e := newEnd(t, "tbridged", [6]byte{2, 4, 4, 4, 4, 3}, bridged)
	w.other = ifindex
	l, err := netlink.LinkByIndex(ifindex)
	must(t, err)
	must(t, netlink.LinkSetMaster(l, b))
	must(t, netlink.LinkSetUp(b))
	dst := net.IPNet{IP: net.IPv4(10, 1, 0, 3), Mask: net.CIDRMask(32, 32)}
	must(t, netlink.RouteReplace(&netlink.Route{LinkIndex: b.Index, Dst: &dst, Src: net.IPv4(10, 1, 0, 1), Scope: netlink.SCOPE_LINK}))
	must(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: b.Index, State: netlink.NUD_PERMANENT, IP: dst.IP, HardwareAddr: bridged[:]}))
	must(t, w.o.SyncPorts([]table.Port{
		{ID: table.HostPort, Kind: table.PortHost},
		{ID: otherID, Kind: table.PortPod, Ifindex: uint32(ifindex), PeerMAC: bridged, HostMAC: bridgeMAC, Name: portName("tbridged")},
	}))
	return e
}

// TestBridgedPod: a pod below a bridge is met at its veth, in front of the bridge, and
// reached past it; what is given back goes through the bridge as the pod had sent it.
func TestBridgedPod(t *testing.T) {
	w := newWire(t)
	pod := w.bridgedPod(t)
	w.insert(t, pair{client: "10.1.0.3", clientPort: 5000, vip: "10.96.0.1", vipPort: 80, backend: "10.1.0.1", backendPort: 5001, protocol: 17}, conntrack.ModeGo)

	t.Run("its packet to a VIP goes to Go", func(t *testing.T) {
		syn := from("10.1.0.3", "10.96.0.1", 6, tcp(1000, 80))
		pod.send(t, syn, len(syn))
		w.receiveExactly(t, onTrunk(syn, 0x50, packet.PuntVIP, otherID))
	})
	t.Run("what Go delivers arrives as from the bridge", func(t *testing.T) {
		reply := sum4(from("192.0.2.9", "10.1.0.3", 17, udp(53, 5002)))
		w.inject(t, onTrunk(reply, 0x49, byte(packet.Direct), otherID))
		pod.expect(t, withMACs(reply, bridged, bridgeMAC))
	})
	t.Run("what Go gives back reaches the node's sockets through the bridge", func(t *testing.T) {
		s := socket(t, "10.1.0.1:5001")
		w.inject(t, onTrunk(sum4(from("10.1.0.3", "10.1.0.1", 17, udp(5000, 5001))), 0x49, byte(packet.Stack), otherID))
		must(t, s.SetReadDeadline(time.Now().Add(patience)))
		b := make([]byte, 100)
		n, sender, err := s.ReadFromUDPAddrPort(b)
		if err != nil || string(b[:n]) != "lace" || sender != netip.MustParseAddrPort("10.1.0.3:5000") {
			t.Errorf("received %q from %v (%v)", b[:n], sender, err)
		}
	})
	t.Run("a reply of the node's own backend is met below the bridge and let go on", func(t *testing.T) {
		_, err := socket(t, "10.1.0.1:5001").WriteToUDPAddrPort([]byte("reply"), netip.MustParseAddrPort("10.1.0.3:5000"))
		must(t, err)
		b, _ := w.receive(t, toPort(5000))
		if p, ok := packet.ReadPunt(b); !ok || p != (packet.Punt{Port: otherID, Why: packet.PuntFlow, Egress: true}) {
			t.Errorf("the frame is marked %+v, %v", p, ok)
		}
		packet.WriteInject(b, packet.Resume, otherID)
		w.inject(t, b)
		pod.expect(t, withMACs(b, bridged, bridgeMAC))
	})
}
