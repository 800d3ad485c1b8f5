package xdp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp/xsk"
)

// patience is how long a test waits for a packet that has to come.
const patience = 5 * time.Second

// wire is a node whose devices lead somewhere: a pod and the outside in namespaces of their
// own, the trunk with two AF_XDP sockets that stand in for Go's workers.
//
//	10.1.0.2 fd00::2         pod, behind tpod
//	10.1.0.1 fd00::1         the node
//	192.0.2.1                the node's uplink tup.7, 192.0.2.9 the outside
//	10.96.0.0/16 fd96::/112  routed to lace0
type wire struct {
	*node
	trunk        *Trunk
	umem         *xsk.Umem
	sockets      []*xsk.Socket
	toPod, toOut *end
}

// end is the far end of a device, in a namespace of its own, with a packet socket on it.
type end struct {
	ns  *namespace
	fd  int
	mac [6]byte
}

var outMAC = [6]byte{2, 9, 9, 9, 9, 9}

func newWire(t *testing.T) *wire {
	t.Helper()
	o := open(t, mountBPF(t))
	w := &wire{node: &node{o: o}}
	w.trunk = openTrunk(t, t.TempDir(), 2, 1500)
	must(t, sysctl("net/ipv4/ip_forward", "1"))
	w.pod, w.toPod = newEnd(t, "tpod", podGateway, podMAC)
	w.uplink, w.toOut = newEnd(t, "tup.7", uplinkMAC, outMAC)
	w.setAddresses(t)

	flows, _, err := conntrack.Map(o.FlowMemory())
	must(t, err)
	w.flows = flows
	must(t, o.SetFlowKeys(flows.Keys(), flows.Buckets()))
	must(t, o.AttachTrunk(w.trunk))
	must(t, o.SyncSources(w.node.addresses()))
	must(t, o.SyncClaims(w.claims()))
	must(t, o.setBackends(everybody()))
	all := w.ports()
	must(t, o.SyncPorts([]table.Port{all[0], all[1], all[len(all)-1]}))
	w.openSockets(t)
	return w
}

func newEnd(t *testing.T, name string, mac, farMAC [6]byte) (ifindex int, e *end) {
	t.Helper()
	ns, _, err := openNamespace(filepath.Join(t.TempDir(), "end"))
	must(t, err)
	t.Cleanup(func() { ns.close(); must(t, dismount(ns.path)) })
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = name, mac[:], 9000
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerHardwareAddr, v.PeerNamespace = "eth0", farMAC[:], netlink.NsFd(ns.file.Fd())
	must(t, netlink.LinkAdd(v))
	t.Cleanup(func() { _ = netlink.LinkDel(v) })
	must(t, netlink.LinkSetUp(v))
	e = &end{ns: ns, fd: -1, mac: farMAC}
	must(t, ns.do(func() error { return e.listen() }))
	t.Cleanup(func() { unix.Close(e.fd) })
	return v.Index, e
}

// listen opens a packet socket with offload headers on eth0.
func (e *end) listen() error {
	l, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	if e.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(e.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptTimeval(e.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}); err != nil {
		return err
	}
	return unix.Bind(e.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: l.Attrs().Index})
}

const vnetHeader = 10 // struct virtio_net_hdr

// send sends a frame as it is. The kernel holds linear bytes of a frame beyond a page in
// one piece and the rest elsewhere.
func (e *end) send(t *testing.T, frame []byte, linear int) {
	t.Helper()
	b := make([]byte, vnetHeader, vnetHeader+len(frame))
	binary.LittleEndian.PutUint16(b[2:], uint16(linear))
	if _, err := unix.Write(e.fd, append(b, frame...)); err != nil {
		t.Fatalf("sending %d bytes: %v", len(frame), err)
	}
}

// expect waits for exactly this frame.
func (e *end) expect(t *testing.T, want []byte) {
	t.Helper()
	b := make([]byte, 10000)
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, err := unix.Read(e.fd, b)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		must(t, err)
		if bytes.Equal(b[vnetHeader:n], want) {
			return
		}
		got = append(got, fmt.Sprintf("%x", b[vnetHeader:n]))
	}
	t.Errorf("did not receive\n%x\nbut %d others\n%s", want, len(got), got)
}

// setAddresses gives the node's devices addresses and routes, of both families.
func (w *wire) setAddresses(t *testing.T) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.LinkSetUp(lo))
	for _, a := range []struct {
		ifindex int
		addr    string
	}{{lo.Attrs().Index, "10.1.0.1/32"}, {lo.Attrs().Index, "fd00::1/128"}, {w.uplink, "192.0.2.1/24"}} {
		addr, err := netlink.ParseAddr(a.addr)
		must(t, err)
		addr.Flags = unix.IFA_F_NODAD
		must(t, netlink.AddrReplace(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: a.ifindex}}, addr))
	}
	for _, r := range []struct {
		ifindex int
		to, src string
	}{
		{w.pod, "10.1.0.2/32", "10.1.0.1"}, {w.pod, "fd00::2/128", "fd00::1"},
		{w.trunk.Lace0, "10.96.0.0/16", "10.1.0.1"}, {w.trunk.Lace0, "fd96::/112", "fd00::1"},
	} {
		_, dst, err := net.ParseCIDR(r.to)
		must(t, err)
		must(t, netlink.RouteReplace(&netlink.Route{LinkIndex: r.ifindex, Dst: dst, Src: net.ParseIP(r.src), Scope: netlink.SCOPE_LINK}))
	}
	for _, n := range []struct {
		ifindex int
		addr    string
		mac     [6]byte
	}{{w.pod, "10.1.0.2", podMAC}, {w.pod, "fd00::2", podMAC}, {w.uplink, "192.0.2.9", outMAC}} {
		must(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: n.ifindex, State: netlink.NUD_PERMANENT, IP: net.ParseIP(n.addr), HardwareAddr: n.mac[:]}))
	}
}

func (w *wire) openSockets(t *testing.T) {
	t.Helper()
	var err error
	w.umem, err = xsk.NewUmem(xsk.UmemConfig{Frames: 512})
	must(t, err)
	t.Cleanup(func() { w.umem.Close() })
	for q := range w.trunk.Queues {
		var s *xsk.Socket
		must(t, w.trunk.Do(func() (err error) {
			s, err = xsk.Open(w.umem, xsk.Config{Device: lace1, Queue: q, Fill: 128, Receive: 128, Transmit: 128, Completion: 128})
			return err
		}))
		t.Cleanup(func() { s.Close() })
		s.Refill(128)
		must(t, w.o.SetSocket(q, s.FD()))
		w.sockets = append(w.sockets, s)
	}
}

// receive waits for one punted frame for which match is true and returns it with its queue.
func (w *wire) receive(t *testing.T, match func(frame []byte) bool) (frame []byte, queue int) {
	t.Helper()
	var seen []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for q, s := range w.sockets {
			batch := make([]xsk.Frame, 1)
			for s.Receive(batch) == 1 {
				b := append([]byte{}, w.umem.Bytes(batch[0])...)
				_, err := w.umem.Release(batch)
				must(t, err)
				s.Refill(1)
				if match(b) {
					return b, q
				}
				seen = append(seen, fmt.Sprintf("%x", b))
			}
		}
		time.Sleep(time.Millisecond) // two sockets are polled in turn until the deadline
	}
	t.Fatalf("nothing that matches came to Go, but %d others: %s", len(seen), seen)
	return nil, 0
}

// receiveExactly waits for this very frame.
func (w *wire) receiveExactly(t *testing.T, want []byte) (queue int) {
	t.Helper()
	_, queue = w.receive(t, func(b []byte) bool { return bytes.Equal(b, want) })
	return queue
}

// inject sends a frame as Go does.
func (w *wire) inject(t *testing.T, frame []byte) {
	t.Helper()
	batch := make([]xsk.Frame, 1)
	if w.umem.Allocate(batch) != 1 {
		t.Fatal("no free frame")
	}
	batch[0].Len = uint32(copy(w.umem.Bytes(xsk.Frame{Addr: batch[0].Addr, Len: uint32(len(frame))}), frame))
	if n, err := w.sockets[0].Transmit(batch); n != 1 || err != nil {
		t.Fatalf("transmit: %d, %v", n, err)
	}
	must(t, w.sockets[0].Kick())
	if n := w.sockets[0].Pending(); n > 0 {
		t.Fatalf("%d frames were not sent", n)
	}
}

// countBehind counts the packets that pass the hooks on a device's way in.
func countBehind(t *testing.T, ifindex int) func() uint64 {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, next).WithSymbol("out"),
		asm.Return(),
	}})
	must(t, err)
	t.Cleanup(func() { p.Close() })
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return func() (n uint64) {
		must(t, m.Lookup(uint32(0), &n))
		return n
	}
}

// grows waits until the counters grew by what is wanted.
func (w *wire) grows(t *testing.T, before Counters, want map[string]Count) {
	t.Helper()
	var got map[string]Count
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		now, err := w.o.Counters()
		must(t, err)
		got = grown(before, now)
		reached := true
		for word, c := range want {
			reached = reached && got[word] == c
		}
		if reached {
			return
		}
	}
	t.Errorf("counters grew by %v, want %v", got, want)
}
