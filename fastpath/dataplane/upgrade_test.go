package dataplane

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// The tests of this file hold docs/how-to/upgrade.md to what it says: each plays the file
// or map that a process of another version would have left.

// foreignSnapshot writes a snapshot of another layout.
func (n *network) foreignSnapshot(f *fastpath, generation uint64) {
	n.t.Helper()
	b, err := table.Encode(nil, n.contents(generation))
	n.must(err)
	const layoutAt = 8
	binary.LittleEndian.PutUint32(b[layoutAt:], table.Layout+1)
	n.must(table.WriteFile(f.config.path(snapshotFile), b))
}

// TestUpgradeSnapshotOfAnotherLayout: while it runs, the last good one stays in use. At a
// start there is none: the lane goes on, new connections wait, and go on as soon as an
// agent that fits has written one.
func TestUpgradeSnapshotOfAnotherLayout(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	n.routeServices()
	f.uses(1)
	flows := n.connect()

	n.foreignSnapshot(f, 2)
	f.says("snapshot of another layout")
	f.says("the last good one stays in use")
	n.converse(n.client, "tcp", netip.AddrPortFrom(vips[0], toWeb))
	n.goOn(flows)

	f.kill()
	f.start()
	f.says("there is none in use")
	n.goOn(flows)
	c, err := n.dial(n.client, "udp", netip.AddrPortFrom(vips[0], toWeb))
	n.must(err)
	defer c.Close()
	if _, err := c.Write([]byte("nobody decides about this")); err != nil {
		t.Error(err)
	}
	f.eventually("the datagram was dropped for want of tables", func() bool { return f.dropped("no-snapshot") > 0 })
	for _, a := range n.web.addrs {
		n.converse(n.client, "tcp", netip.AddrPortFrom(a, 8080))
	}

	n.publishLane(f, 3)
	f.uses(3)
	n.must(talk(c, 100))
	n.goOn(flows)
	f.stop()
}

// TestUpgradeMapsOfAnotherLayout: the flows are lost, and counted. TCP connections to
// Services are reset by their next packet, datagrams go on as new flows, everything else
// is untouched.
func TestUpgradeMapsOfAnotherLayout(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(f *fastpath)
	}{
		{"of the maps", func(f *fastpath) { f.change("settings", func(b []byte) { b[0]++ }) }},
		{"of the flow table alone", func(f *fastpath) { f.change("flows", func(b []byte) { b[7]++ }) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, f := newNetwork(t), newFastpath(t, 1)
			n.serveEcho()
			n.publishLane(f, 1)
			f.start()
			n.routeServices()
			f.uses(1)
			flows := n.connect()
			direct, err := n.dial(n.client, "tcp", netip.AddrPortFrom(n.web.addrs[0], 8080))
			n.must(err)
			defer direct.Close()
			n.must(talk(direct, 100))

			f.kill()
			c.spoil(f)
			f.start()
			f.uses(1)
			if s := f.readStatus(); s.FlowsKept || s.FlowsLost < len(flows) {
				t.Errorf("flows kept: %t, lost: %d, want %d lost", s.FlowsKept, s.FlowsLost, len(flows))
			}
			n.must(talk(direct, 100))
			for _, flow := range flows {
				n.afterLoss(flow)
			}
			n.everybody()
			f.stop()
		})
	}
}

// afterLoss wants a connection whose entry is gone to end at once, and datagrams to go on.
func (n *network) afterLoss(c net.Conn) {
	n.t.Helper()
	err := talk(c, 100)
	if c.LocalAddr().Network() == "udp" {
		if err != nil {
			n.t.Errorf("udp to %s: %v", c.RemoteAddr(), err)
		}
		return
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		n.t.Errorf("tcp to %s: %v, want it reset", c.RemoteAddr(), err)
	}
}

// TestUpgradeCountersOfAnotherLayout: counting begins anew, and nothing else is affected.
func TestUpgradeCountersOfAnotherLayout(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	n.routeServices()
	f.uses(1)
	flows := n.connect()
	f.kill()
	b, err := os.ReadFile(f.config.path(counterFile))
	n.must(err)
	const layoutAt = 8
	binary.LittleEndian.PutUint64(b[layoutAt:], counter.Layout+1)
	n.must(replace(f.config.path(counterFile), b))
	if _, err := counter.Open(f.config.path(counterFile)); !errors.Is(err, counter.ErrLayout) {
		t.Errorf("a reader gives %v, want %v", err, counter.ErrLayout)
	}
	f.start()
	f.uses(1)
	n.goOn(flows)
	if s := f.readStatus(); !s.FlowsKept || s.FlowsLost != 0 {
		t.Errorf("flows kept: %t, lost: %d", s.FlowsKept, s.FlowsLost)
	}
	if got := f.settled().Events[counter.Expired]; got != 0 {
		t.Errorf("%d flows expired since the counters began anew", got)
	}
	f.stop()
}

// change changes the first entry of a pinned array.
func (f *fastpath) change(name string, change func([]byte)) {
	f.t.Helper()
	m, err := ebpf.LoadPinnedMap(f.pin("maps", name), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer m.Close()
	b, err := m.LookupBytes(uint32(0))
	if err == nil {
		change(b)
		err = m.Put(uint32(0), b)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// dropped counts packets that Go dropped for a reason.
func (f *fastpath) dropped(word string) uint64 {
	f.t.Helper()
	for why, n := range f.totals().Reasons {
		if reason.Reason(why).String() == word {
			return n.Packets
		}
	}
	f.t.Fatalf("no reason %q", word)
	return 0
}
