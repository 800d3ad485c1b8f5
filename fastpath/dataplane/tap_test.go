package dataplane

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

// newMuteNetwork is a network whose pods and outside say nothing but what a test sends: far
// ends have no addresses, so that no stack answers.
func newMuteNetwork(t testing.TB) *network {
	t.Helper()
	testenv.Privileged(t)
	n := &network{t: t}
	n.forward()
	n.client, n.web = n.mutePod("client", 2), n.mutePod("web", 3)
	n.wire = &pod{device: "up0", mac: net.HardwareAddr{2, 0, 0, 0, 3, 1}, gateway: net.HardwareAddr{2, 0, 0, 0, 3, 2},
		addrs: pair("172.30.0.100", "fd30::100")}
	up := n.veth(n.wire)
	n.raise(n.wire)
	for i, a := range nodeAddrs {
		n.must(netlink.AddrReplace(up, &netlink.Addr{IPNet: subnet(a, 24+40*i), Flags: unix.IFA_F_NODAD}))
		n.neighbour(up, n.wire.addrs[i], n.wire.mac)
		remote := subnet(remoteAddrs[i], 24+40*i)
		remote.IP = remote.IP.Mask(remote.Mask)
		n.must(netlink.RouteReplace(&netlink.Route{LinkIndex: up.Index, Dst: remote, Gw: n.wire.addrs[i].AsSlice()}))
	}
	return n
}

func (n *network) mutePod(name string, last byte) *pod {
	n.t.Helper()
	addrs := pair("10.244.1."+string('0'+rune(last)), "fd00:10:244:1::"+string('0'+rune(last)))
	p := &pod{device: "v" + name, mac: net.HardwareAddr{2, 0, 0, 0, 1, last}, gateway: net.HardwareAddr{2, 0, 0, 0, 2, last}, addrs: addrs}
	v := n.veth(p)
	n.raise(p)
	for _, a := range p.addrs {
		n.must(netlink.RouteReplace(&netlink.Route{LinkIndex: v.Index, Dst: host(a), Scope: netlink.SCOPE_LINK}))
		n.neighbour(v, a, p.mac)
	}
	return p
}

// raise sets the far end up.
func (n *network) raise(p *pod) {
	n.t.Helper()
	n.in(p, func() { n.must(netlink.LinkSetUp(n.link("eth0"))) })
}

// tap sends and receives whole frames on a device.
type tap struct {
	fd       int
	mac, far [6]byte // of frames that are sent: source and destination
}

const everything = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8

// tap opens a tap in the thread's namespace.
func (n *network) tap(device string, mac, far net.HardwareAddr) *tap {
	n.t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	n.must(err)
	n.t.Cleanup(func() { unix.Close(fd) })
	n.must(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20))
	n.must(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1))
	n.must(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: n.link(device).Attrs().Index}))
	t := &tap{fd: fd}
	copy(t.mac[:], mac)
	copy(t.far[:], far)
	return t
}

func (p *tap) send(t testing.TB, frame []byte) {
	t.Helper()
	if _, err := unix.Write(p.fd, frame); err != nil {
		t.Fatalf("sending %x: %v", frame, err)
	}
}

// receive returns a frame that belongs to a test, or nil when none is there.
// What kernels say to each other about neighbours and groups is nobody's business.
func (p *tap) receive(t testing.TB) []byte {
	t.Helper()
	b := make([]byte, 4096)
	for {
		n, err := unix.Read(p.fd, b)
		if err == unix.EAGAIN || err == unix.EINTR {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if !neighbourly(b[:n]) {
			return b[:n]
		}
	}
}

func neighbourly(b []byte) bool {
	const ip6, next, dst = 0x86dd, 14 + 6, 14 + 24
	switch kind := binary.BigEndian.Uint16(b[12:]); {
	case kind != ip6:
		return kind != 0x0800
	case len(b) < 54 || b[dst] == 0xff || b[dst] == 0xfe:
		return true
	default:
		return b[next] == unix.IPPROTO_ICMPV6 && len(b) > 54 && b[54] >= 130 && b[54] <= 143
	}
}

// listenAtTheStack catches what the node's own stack gets by these devices, behind every
// hook, and does not let it get there, so that it says nothing.
func (n *network) listenAtTheStack(devices ...string) *tap {
	n.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "stack0"
	v := netlink.NewVeth(attrs)
	v.PeerName = "stack1"
	n.must(netlink.LinkAdd(v))
	n.t.Cleanup(func() { _ = netlink.LinkDel(v) })
	for _, end := range []string{"stack0", "stack1"} {
		n.must(netlink.LinkSetUp(n.link(end)))
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: divert(n.link("stack0").Attrs().Index)})
	n.must(err)
	n.t.Cleanup(func() { p.Close() })
	for _, device := range devices {
		l, err := link.AttachTCX(link.TCXOptions{Interface: n.link(device).Attrs().Index, Program: p, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
		n.must(err)
		n.t.Cleanup(func() { l.Close() })
	}
	return n.tap("stack1", nil, nil)
}

// divert sends packets to the node's address to a device instead, and lets others go on.
func divert(ifindex int) asm.Instructions {
	const goOn, drop = -1, 2
	v4, v6 := nodeAddrs[0].As4(), nodeAddrs[1].As16()
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadAbs(12, asm.Half),
		asm.JEq.Imm(asm.R0, 0x0800, "v4"),
		asm.JNE.Imm(asm.R0, 0x86dd, "on"),
		asm.LoadAbs(14+24+12, asm.Word),
		asm.JEq.Imm(asm.R0, int32(binary.BigEndian.Uint32(v6[12:])), "take"),
		asm.Ja.Label("on"),
		asm.LoadAbs(14+16, asm.Word).WithSymbol("v4"),
		asm.Mov.Imm32(asm.R1, int32(binary.BigEndian.Uint32(v4[:]))),
		asm.JNE.Reg(asm.R0, asm.R1, "on"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("take"),
		asm.Mov.Imm(asm.R2, int32(ifindex)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnCloneRedirect.Call(),
		asm.Mov.Imm(asm.R0, drop),
		asm.Return(),
		asm.Mov.Imm(asm.R0, goOn).WithSymbol("on"),
		asm.Return(),
	}
}
