package dataplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
)

// patience is how long an answer may take that has to come.
const patience = 2 * time.Second

// dial makes a socket in a pod (nil: on the node) and connects it.
func (n *network) dial(p *pod, kind string, to netip.AddrPort) (c net.Conn, err error) {
	n.t.Helper()
	n.in(p, func() { c, err = net.DialTimeout(kind, to.String(), patience) })
	return c, err
}

// talk sends words of a size and expects them back.
func talk(c net.Conn, size int) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	b := []byte(strings.Repeat("0123456789abcdef", size/16+1))[:size]
	if _, err := c.Write(b); err != nil {
		return err
	}
	got, room := make([]byte, 0, size), make([]byte, size)
	for len(got) < size {
		k, err := c.Read(room)
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", len(got), size, err)
		}
		got = append(got, room[:k]...)
	}
	if string(got) != string(b) {
		return errors.New("the answer is not the question")
	}
	return nil
}

// converse connects, talks and closes.
func (n *network) converse(p *pod, kind string, to netip.AddrPort) {
	n.t.Helper()
	c, err := n.dial(p, kind, to)
	if err == nil {
		defer c.Close()
		err = talk(c, 1200)
	}
	if err != nil {
		n.t.Errorf("%s to %s: %v", kind, to, err)
	}
}

// everybody talks to every backend through the VIP, over every protocol and family.
func (n *network) everybody() {
	n.t.Helper()
	for _, vip := range vips {
		for _, port := range []uint16{toWeb, toNode, toRemote} {
			for _, kind := range []string{"tcp", "udp"} {
				for _, p := range []*pod{n.client, n.web, n.wire, nil} {
					n.converse(p, kind, netip.AddrPortFrom(vip, port))
				}
			}
		}
	}
}

// routeServices is what the agent does for the node's own traffic.
func (n *network) routeServices() {
	n.t.Helper()
	lace0 := n.link("lace0")
	for i, prefix := range []string{"10.96.0.0/16", "fd00:10:96::/112"} {
		_, dst, err := net.ParseCIDR(prefix)
		n.must(err)
		n.must(netlink.RouteReplace(&netlink.Route{
			LinkIndex: lace0.Attrs().Index, Dst: dst, Src: nodeAddrs[i].AsSlice(), Scope: netlink.SCOPE_LINK,
		}))
	}
}

func TestServiceOverRealSockets(t *testing.T) {
	for _, c := range []struct {
		lane              uint8
		workers, rpFilter int
	}{{0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 2, 1}, {1, 1, 0}, {1, 1, 1}, {1, 1, 2}, {1, 2, 1}} {
		t.Run(fmt.Sprintf("lane=%d,workers=%d,rp_filter=%d", c.lane, c.workers, c.rpFilter), func(t *testing.T) {
			n, f := newNetwork(t), newFastpath(t, c.workers)
			n.setRPFilter(c.rpFilter)
			n.serveEcho()
			tables := n.contents(1)
			tables.Settings.Lane = c.lane
			f.publish(tables)
			f.start()
			n.routeServices()
			f.uses(1)
			n.everybody()
			for _, vip := range vips {
				n.large(netip.AddrPortFrom(vip, toWeb))
				n.refused(netip.AddrPortFrom(vip, 81))
			}
			f.stop()
			totals := f.totals()
			least := map[reason.Reason]uint64{reason.NewFlow: 48, reason.Reply: 48, reason.Established: 48, reason.UnknownPort: 2}
			if c.lane != 0 {
				least[reason.Established], least[reason.Reply] = 0, 0 // the kernel's
			}
			for why, least := range least {
				if got := totals.Reasons[why].Packets; got < least {
					t.Errorf("%s: %d packets, want at least %d", why, got, least)
				}
			}
			if got := totals.Events[counter.Installed]; (got >= 24) != (c.lane != 0) { // those of TCP
				t.Errorf("%d flows were handed over", got)
			}
			for r := range reason.Count {
				if got := totals.Reasons[r].Packets; r.Class() == reason.ClassDrop && got != 0 {
					t.Errorf("%s: %d packets dropped", r, got)
				}
			}
		})
	}
}

// setRPFilter makes the node check where packets come from: 0 not, 1 strictly, 2 loosely.
func (n *network) setRPFilter(v int) {
	n.t.Helper()
	for _, device := range []string{"all", "default", n.client.device, n.web.device, n.wire.device} {
		n.must(os.WriteFile("/proc/sys/net/ipv4/conf/"+device+"/rp_filter", fmt.Append(nil, v), 0))
	}
}

// large sends what the pod's kernel hands over in pieces of 64 KiB.
func (n *network) large(at netip.AddrPort) {
	n.t.Helper()
	c, err := n.dial(n.client, "tcp", at)
	n.must(err)
	defer c.Close()
	for range 8 {
		n.must(talk(c, 1<<18))
	}
}

// refused expects an answer at once, of both protocols.
func (n *network) refused(at netip.AddrPort) {
	n.t.Helper()
	start := time.Now()
	_, err := n.dial(n.client, "tcp", at)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		n.t.Errorf("tcp to %s: %v, want it refused", at, err)
	}
	c, err := n.dial(n.client, "udp", at)
	n.must(err)
	defer c.Close()
	if err := talk(c, 100); !errors.Is(err, syscall.ECONNREFUSED) {
		n.t.Errorf("udp to %s: %v, want it refused", at, err)
	}
	if d := time.Since(start); d > 2*time.Second {
		n.t.Errorf("refused after %v", d)
	}
}

func TestKilledAndStartedAgainFlowsGoOn(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	var flows []net.Conn
	for _, vip := range vips {
		for _, kind := range []string{"tcp", "udp"} {
			c, err := n.dial(n.client, kind, netip.AddrPortFrom(vip, toWeb))
			n.must(err)
			defer c.Close()
			n.must(talk(c, 1000))
			flows = append(flows, c)
		}
	}
	f.settled() // a killed process loses the counts that it has not written yet
	f.kill()
	// What is not addressed to a Service does not notice.
	for _, a := range n.web.addrs {
		n.converse(n.client, "tcp", netip.AddrPortFrom(a, 8080))
	}
	start := time.Now()
	f.start()
	t.Logf("serving again after %v", time.Since(start).Round(time.Millisecond))
	for _, c := range flows {
		if err := talk(c, 1000); err != nil {
			t.Errorf("%s to %s after the restart: %v", c.LocalAddr().Network(), c.RemoteAddr(), err)
		}
	}
	c := f.totals()
	if c.Gauges[counter.Restored] < 4 {
		t.Errorf("%d flows restored, want 4 or more", c.Gauges[counter.Restored])
	}
	if c.Gauges[counter.Generation] != 1 {
		t.Errorf("generation %d in use, want the last one, 1, without an agent", c.Gauges[counter.Generation])
	}
	if c.Reasons[reason.NoFlow].Packets != 0 || c.Reasons[reason.NewFlow].Packets != 4 {
		t.Errorf("no-flow %d, new-flow %d; want 0, and 4 from before", c.Reasons[reason.NoFlow].Packets, c.Reasons[reason.NewFlow].Packets)
	}
	f.stop()
}

func TestSnapshotsComeGoAndAreRefused(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	vip := netip.AddrPortFrom(vips[0], toWeb)
	garbage := func() { n.must(replace(f.config.path(snapshotFile), []byte("this is no snapshot"))) }

	// A damaged file at the start: the node starts clean.
	garbage()
	f.start()
	f.says("snapshot refused")
	f.says("damaged snapshot")
	f.publish(n.contents(5))
	f.uses(5)
	n.converse(n.client, "tcp", vip)

	// A damaged file later: the last good one stays in use.
	garbage()
	f.eventually("the file is refused", func() bool { return f.totals().Gauges[counter.Refused] == 2 })
	f.says("the last good one stays in use")
	n.converse(n.client, "tcp", vip)
	if got := f.totals().Gauges[counter.Generation]; got != 5 {
		t.Errorf("generation %d in use, want 5", got)
	}

	// A good one without the Service: its address is the kernel's again.
	c := n.contents(6)
	c.Frontends, c.BackendIDs, c.Backends = nil, nil, nil
	start := time.Now()
	f.publish(c)
	f.uses(6)
	t.Logf("in use after %v", time.Since(start).Round(100*time.Microsecond))
	if _, err := n.dial(n.client, "tcp", vip); err == nil {
		t.Error("a Service that was deleted still answers")
	}
	f.stop()
}

// replace writes a file as the agent does, by renaming.
func replace(path string, b []byte) error {
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func TestASecondFastPathIsRefused(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	f.publish(n.contents(1))
	f.start()
	c := f.config
	c.Log = slog.New(slog.DiscardHandler)
	err := Run(context.Background(), c)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint("process ", f.cmd.Process.Pid)) {
		t.Errorf("a second one gives %v, want ErrInUse and the process that holds the lock", err)
	}
	if _, err := Cleanup(c); !errors.Is(err, ErrInUse) {
		t.Errorf("Cleanup gives %v while a fast path runs, want ErrInUse", err)
	}
	f.stop()
}

func TestTheTrunkIsBuiltAgainWhenItIsTakenAway(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	n.must(netlink.LinkDel(n.link("lace0")))
	f.says("building it again")
	f.eventually("it serves again", func() bool { return strings.Count(f.log.String(), "msg=serving") == 2 })
	n.converse(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
	f.stop()
}

func TestAReplacedDeviceIsFollowed(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	// The pod comes back with the same name and addresses, and another device.
	n.must(netlink.LinkDel(n.link(n.web.device)))
	n.web = n.pod("web", 3)
	n.echo(n.web, n.web.addrs)
	c := n.contents(2)
	for i := range c.Ports {
		c.Ports[i].Generation = 2
	}
	f.publish(c)
	f.uses(2)
	n.converse(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
	n.converse(n.client, "udp", netip.AddrPortFrom(vips[1], toWeb))
	f.stop()
}

func TestStatusSaysWhatIsInForce(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 2)
	f.publish(n.contents(1))
	f.start()
	b, err := os.ReadFile(f.config.path(statusFile))
	n.must(err)
	var s Status
	n.must(json.Unmarshal(b, &s))
	if s.PID != f.cmd.Process.Pid || s.Workers != 2 || s.Queues != 2 || s.TrunkMTU != DefaultTrunkMTU ||
		s.SocketMode != "copy" || s.XDPMode != "native" || s.FlowSlots != 1<<14 || s.Kernel == "" || len(s.SnapshotLayouts) == 0 {
		t.Errorf("fastpath.json says %s", b)
	}
	f.stop()
}

// TestTheLaneIsSwitchedUnderConnections: they go on, and are moved by whom the tables say.
func TestTheLaneIsSwitchedUnderConnections(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	generation := uint64(0)
	lane := func(on uint8) {
		generation++
		c := n.contents(generation)
		c.Settings.Lane = on
		f.publish(c)
		if generation == 1 {
			f.start()
		}
		f.uses(generation)
	}
	lane(0)
	var flows []net.Conn
	for _, vip := range vips {
		for _, kind := range []string{"tcp", "udp"} {
			c, err := n.dial(n.client, kind, netip.AddrPortFrom(vip, toWeb))
			n.must(err)
			defer c.Close()
			flows = append(flows, c)
		}
	}
	const rounds = 20
	speak := func() (byGo uint64) {
		t.Helper()
		before := f.settled().Reasons[reason.Reply].Packets
		for range rounds {
			for _, c := range flows {
				n.must(talk(c, 1000))
			}
		}
		return f.settled().Reasons[reason.Reply].Packets - before
	}
	all := uint64(rounds * len(flows))
	for i := range 2 {
		if got := speak(); got < all {
			t.Errorf("round %d, lane off: Go moved %d replies of %d", i, got, all)
		}
		lane(1)
		speak() // hands over what was not before
		if got := speak(); got > all/10 {
			t.Errorf("round %d, lane on: Go moved %d replies of %d", i, got, all)
		}
		lane(0)
	}
	f.stop()
}

// TestFilesSpoiltInPlace: who overwrites or cuts a file of the state directory while the
// fast path runs costs it nothing but that file.
func TestFilesSpoiltInPlace(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	f.publish(n.contents(1))
	f.start()
	f.uses(1)
	vip := netip.AddrPortFrom(vips[0], toWeb)
	n.converse(n.client, "tcp", vip)
	flows := f.settled().Reasons[reason.NewFlow].Packets

	// Not renamed over: the very file that was opened.
	snapshot := f.config.path(snapshotFile)
	st, err := os.Stat(snapshot)
	n.must(err)
	n.must(os.WriteFile(snapshot, bytes.Repeat([]byte{0xff}, int(st.Size())), 0o600))
	n.converse(n.client, "tcp", vip)
	f.says("the last good one stays in use")
	n.must(os.Truncate(snapshot, 0))
	n.converse(n.client, "tcp", vip)

	n.must(os.Truncate(f.config.path(counterFile), 0))
	n.converse(n.client, "tcp", vip)
	f.eventually("the counter file is whole again, with nothing lost", func() bool {
		r, err := counter.Open(f.config.path(counterFile))
		if err != nil {
			return false
		}
		defer r.Close()
		c := r.Totals()
		return c.Gauges[counter.Generation] == 1 && c.Reasons[reason.NewFlow].Packets > flows
	})
	f.stop()
}
