package xdp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/fastpath/packet"
)

// Addresses of the tests' node, and what stands for them. On a node an alias is routed to
// the trunk; here the loopback device has it, so that a listener there is what is reached.
const (
	own4, alias4 = "192.0.2.11", "169.254.76.7"
	own6, alias6 = "2001:db8::11", "fd4c:6163:65:76::7"
	ownPort      = 30080
)

// onLoopback gives the loopback device of the test's namespace addresses.
func onLoopback(t testing.TB, addresses ...string) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip := netip.MustParseAddr(a)
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}, Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(lo, addr); err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		t.Cleanup(func() {
			if err := netlink.AddrDel(lo, addr); err != nil {
				t.Errorf("%s: %v", a, err)
			}
		})
		awaitLocal(t, ip)
	}
}

// awaitLocal waits until the kernel takes an address for its own: for IPv6 that comes after
// the call that added it.
func awaitLocal(t testing.TB, a netip.Addr) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		routes, err := netlink.RouteGet(a.AsSlice())
		if err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not local: %v, %v", a, routes, err)
		}
	}
}

// echoes answers at address and port with the address that it sees the client at.
func echoes(t testing.TB, address string) {
	t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(address), ownPort).String()
	tcp, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "tcp at "+address)
			c.Close()
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		b := make([]byte, 100)
		for {
			_, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo([]byte("udp at "+address), from)
		}
	}()
	t.Cleanup(func() {
		tcp.Close()
		udp.Close()
		<-done
		<-done
	})
}

func aliasesOfTest() (out []Alias) {
	for _, pair := range [][2]string{{own4, alias4}, {own6, alias6}} {
		for _, protocol := range []uint8{packet.ProtocolTCP, packet.ProtocolUDP} {
			out = append(out, Alias{
				Own: packet.AddrFrom(netip.MustParseAddr(pair[0])), Alias: packet.AddrFrom(netip.MustParseAddr(pair[1])),
				Protocol: protocol, Port: ownPort,
			})
		}
	}
	return out
}

// withSockets opens objects that send the node's sockets to the aliases.
func withSockets(t testing.TB, bpffs string) *Objects {
	t.Helper()
	o := open(t, bpffs)
	if err := o.SyncAliases(aliasesOfTest()); err != nil {
		t.Fatal(err)
	}
	if err := o.AttachSockets(); err != nil {
		t.Fatalf("AttachSockets: %v", err)
	}
	return o
}

// socketNode is a bpffs and a loopback device with own addresses and aliases; what is
// attached goes with the test.
func socketNode(t testing.TB) (bpffs string) {
	t.Helper()
	bpffs = mountBPF(t)
	onLoopback(t, own4, own6, alias4, alias6)
	echoes(t, alias4)
	echoes(t, alias6)
	t.Cleanup(func() {
		if err := Cleanup(bpffs); err != nil {
			t.Error(err)
		}
	})
	return bpffs
}

// call is one way to send something and to hear who answered.
type call struct {
	name   string
	family int // of the socket
	kind   int
	to     string // as the process says it
	send   bool   // unconnected: sendto, recvfrom
	bind   string // before
	device string // that the socket is bound to
}

var calls = []call{
	{name: "TCP", family: unix.AF_INET, kind: unix.SOCK_STREAM, to: own4},
	{name: "TCP over IPv6", family: unix.AF_INET6, kind: unix.SOCK_STREAM, to: own6},
	{name: "TCP, an IPv6 socket to a mapped address", family: unix.AF_INET6, kind: unix.SOCK_STREAM, to: "::ffff:" + own4},
	{name: "UDP, connected", family: unix.AF_INET, kind: unix.SOCK_DGRAM, to: own4},
	{name: "UDP over IPv6, connected", family: unix.AF_INET6, kind: unix.SOCK_DGRAM, to: own6},
	{name: "UDP, connected, an IPv6 socket to a mapped address", family: unix.AF_INET6, kind: unix.SOCK_DGRAM, to: "::ffff:" + own4},
	{name: "UDP, unconnected", family: unix.AF_INET, kind: unix.SOCK_DGRAM, to: own4, send: true},
	{name: "UDP over IPv6, unconnected", family: unix.AF_INET6, kind: unix.SOCK_DGRAM, to: own6, send: true},
	{name: "UDP, unconnected, an IPv6 socket to a mapped address", family: unix.AF_INET6, kind: unix.SOCK_DGRAM, to: "::ffff:" + own4, send: true},
	{name: "TCP, bound to an address of the node", family: unix.AF_INET, kind: unix.SOCK_STREAM, to: own4, bind: own4},
}

func sockaddr(family int, address string, port int) unix.Sockaddr {
	a := netip.MustParseAddr(address)
	if family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: port, Addr: a.As16()}
}

// textOf is an address as a process sees it.
func textOf(sa unix.Sockaddr) string {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)).String()
	}
	return fmt.Sprint(sa)
}

// make calls, and returns what was answered, by whom recvfrom says it was, and the peer.
func (c *call) make() (answer, from, peer string, err error) {
	fd, err := unix.Socket(c.family, c.kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", "", "", err
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(int64(5 * time.Second))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return "", "", "", err
	}
	if c.device != "" {
		if err := unix.BindToDevice(fd, c.device); err != nil {
			return "", "", "", err
		}
	}
	if c.bind != "" {
		if err := unix.Bind(fd, sockaddr(c.family, c.bind, 0)); err != nil {
			return "", "", "", err
		}
	}
	to := sockaddr(c.family, c.to, ownPort)
	if c.send {
		err = unix.Sendto(fd, []byte("x"), 0, to)
	} else if err = unix.Connect(fd, to); err == nil {
		if c.kind == unix.SOCK_DGRAM {
			_, err = unix.Write(fd, []byte("x"))
		}
		if sa, e := unix.Getpeername(fd); e == nil {
			peer = textOf(sa)
		}
	}
	if err != nil {
		return "", "", peer, err
	}
	b := make([]byte, 100)
	n, sa, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return "", "", peer, err
	}
	return string(b[:n]), textOf(sa), peer, nil
}

func (c *call) dialled() string {
	return netip.AddrPortFrom(netip.MustParseAddr(c.to), ownPort).String()
}

// reaches makes a call that must get to the alias, and see the address that was dialled.
func reaches(t *testing.T, c *call) {
	t.Helper()
	answer, from, peer, err := c.make()
	want := alias4
	if c.to == own6 {
		want = alias6
	}
	if err != nil || !strings.HasSuffix(answer, " at "+want) {
		t.Errorf("%s: answered %q, %v; want one at %s", c.name, answer, err, want)
		return
	}
	if c.kind == unix.SOCK_DGRAM && from != c.dialled() {
		t.Errorf("%s: the answer comes from %s, want %s", c.name, from, c.dialled())
	}
	if !c.send && peer != c.dialled() {
		t.Errorf("%s: the peer is %s, want %s", c.name, peer, c.dialled())
	}
}

// stays makes a call that must not be sent anywhere: nobody listens where it goes.
func stays(t *testing.T, c *call) {
	t.Helper()
	c.send = false // so that a refusal is heard
	if answer, _, _, err := c.make(); err != unix.ECONNREFUSED {
		t.Errorf("%s: answered %q, %v; want a refusal", c.name, answer, err)
	}
}

// TestSockets: a process of the node that calls a port of a Service at an address of the
// node gets to the alias, whatever its socket is, and sees what it called.
func TestSockets(t *testing.T) {
	o := withSockets(t, socketNode(t))
	for i := range calls {
		reaches(t, &calls[i])
	}
	for _, c := range []call{
		{name: "a loopback address", family: unix.AF_INET, kind: unix.SOCK_STREAM, to: "127.0.0.1"},
		{name: "a loopback address of IPv6", family: unix.AF_INET6, kind: unix.SOCK_STREAM, to: "::1"},
		{name: "a socket bound to a loopback address", family: unix.AF_INET, kind: unix.SOCK_STREAM, to: own4, bind: "127.0.0.1"},
		{name: "one of IPv6", family: unix.AF_INET6, kind: unix.SOCK_STREAM, to: own6, bind: "::1"},
		{name: "an IPv6 socket bound to a mapped loopback address", family: unix.AF_INET6, kind: unix.SOCK_STREAM, to: "::ffff:" + own4, bind: "::ffff:127.0.0.1"},
		{name: "a socket bound to a device", family: unix.AF_INET, kind: unix.SOCK_STREAM, to: own4, device: "lo"},
		{name: "one of IPv6 bound to a device", family: unix.AF_INET6, kind: unix.SOCK_DGRAM, to: own6, device: "lo"},
	} {
		stays(t, &c)
	}
	// Services go, and come again.
	if err := o.SyncAliases(nil); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		gone := calls[i]
		stays(t, &gone)
	}
	if err := o.SyncAliases(aliasesOfTest()); err != nil {
		t.Fatal(err)
	}
	reaches(t, &calls[0])
	if err := o.TrimAliases(aliasesOfTest()[1:]); err != nil {
		t.Fatal(err)
	}
	gone := calls[0]
	stays(t, &gone)
	reaches(t, &calls[1])
}

// TestSocketsOfOthers: sockets of other network namespaces, those of pods, go where they
// went; and a second node on the same kernel has its own.
func TestSocketsOfOthers(t *testing.T) {
	withSockets(t, socketNode(t))
	inNamespace(t, func(t *testing.T) {
		onLoopback(t, own4, own6, alias4, alias6)
		echoes(t, alias4)
		echoes(t, alias6)
		for i := range calls {
			other := calls[i]
			stays(t, &other)
		}
		bpffs := mountBPF(t)
		t.Cleanup(func() {
			if err := Cleanup(bpffs); err != nil {
				t.Error(err)
			}
		})
		withSockets(t, bpffs)
		for i := range calls {
			reaches(t, &calls[i])
		}
	})
	for i := range calls {
		reaches(t, &calls[i])
	}
}

// inNamespace runs f in a network namespace of its own. All sockets must be made by it.
func inNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	t.Run("in another namespace", func(t *testing.T) {
		runtime.LockOSThread() // and not unlocked: the thread ends with the test
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Fatal(err)
		}
		f(t)
	})
}

// TestSocketsOutliveTheProcess: what is pinned works on without the process, the next one
// takes it over, and Cleanup ends it.
func TestSocketsOutliveTheProcess(t *testing.T) {
	bpffs := socketNode(t)
	first := withSockets(t, bpffs)
	before := socketPrograms(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		reaches(t, &calls[i])
	}
	second := withSockets(t, bpffs)
	for name, id := range socketPrograms(t, second) {
		if before[name].link != id.link || before[name].program == id.program {
			t.Errorf("%s: link %d with program %d, then link %d with program %d: want the same link and another program",
				name, before[name].link, before[name].program, id.link, id.program)
		}
	}
	for i := range calls {
		reaches(t, &calls[i])
	}
	if err := second.SyncPorts(nil); err != nil {
		t.Fatal(err)
	}
	reaches(t, &calls[0])
	if err := Cleanup(bpffs); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		gone := calls[i]
		stays(t, &gone)
	}
}

type attachment struct{ link, program uint32 }

func socketPrograms(t *testing.T, o *Objects) map[string]attachment {
	t.Helper()
	out := map[string]attachment{}
	for name, l := range o.sockets.links {
		what, err := l.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = attachment{uint32(what.ID), uint32(what.Program)}
	}
	if len(out) != len(o.sockets.hooks()) {
		t.Fatalf("%d links, want %d", len(out), len(o.sockets.hooks()))
	}
	return out
}

// TestSocketsAreRepaired: what somebody detaches, unpins or changes is put back, and told.
func TestSocketsAreRepaired(t *testing.T) {
	bpffs := socketNode(t)
	o := withSockets(t, bpffs)
	told := map[Part]int{}
	o.repaired = func(p Part, _ string) { told[p]++ }
	l, err := link.LoadPinnedLink(o.pins.linkPath("own-connect4"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Detach(); err != nil {
		t.Fatal(err)
	}
	l.Close()
	gone := calls[0]
	stays(t, &gone)
	if err := os.Remove(o.pins.linkPath("own-connect6")); err != nil {
		t.Fatal(err)
	}
	for p := range o.sockets.want.places {
		if err := o.sockets.bpf.OwnPlaces.Delete(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.AttachSockets(); err != nil {
		t.Fatal(err)
	}
	if err := o.Reread(); err != nil {
		t.Fatal(err)
	}
	if err := o.SyncAliases(aliasesOfTest()); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		reaches(t, &calls[i])
	}
	if !exists(o.pins.linkPath("own-connect4")) || !exists(o.pins.linkPath("own-connect6")) {
		t.Error("a pin is missing")
	}
	if told[PartProgram] != 1 || told[PartLinkPin] != 1 || told[PartEntries] != 1 {
		t.Errorf("told of %v: want one program, one pin of a link, entries of one map", told)
	}
}

// TestCgroupMounts: the hierarchy is found where it is mounted, beside version 1 too.
func TestCgroupMounts(t *testing.T) {
	const mountinfo = `24 30 0:22 / /proc rw,nosuid shared:12 - proc proc rw
29 24 0:25 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu
30 24 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw
31 24 0:26 /../.. /mnt/with\040space rw - cgroup2 none rw
32 24 0:27 / /mnt/cgroup2 rw - tmpfs cgroup2 rw
broken
`
	got := cgroupMounts(strings.NewReader(mountinfo))
	if want := []string{"/sys/fs/cgroup/unified", "/mnt/with space"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCgroupRoot: the root is found by its number, also where it is mounted nowhere.
func TestCgroupRoot(t *testing.T) {
	testenv.Privileged(t)
	for name, find := range map[string]func() (*os.File, error){"as it is": openCgroupRoot, "mounted nowhere": mountCgroup} {
		f, err := find()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !isCgroupRoot(f) {
			t.Errorf("%s: %s is not the root", name, f.Name())
		}
		f.Close()
	}
	if f := openIfRoot(t.TempDir()); f != nil {
		t.Error("any directory is taken for the root")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
