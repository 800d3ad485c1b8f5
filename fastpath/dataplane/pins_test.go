package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/counter"
)

// TestReplacedPinsArePutRight: a pin that keeps something else is as bad as none. It is seen
// while the process runs, put right and counted, whatever took its place.
func TestReplacedPinsArePutRight(t *testing.T) {
	n, f := newNetwork(t), newFastpath(t, 1)
	n.serveEcho()
	n.publishLane(f, 1)
	f.start()
	n.routeServices()
	f.uses(1)
	flows := n.connect()
	in, out := n.pinOf(n.client, "in"), n.pinOf(n.wire, "out")
	for _, c := range []struct {
		name  string
		what  counter.Repair
		times uint64
		spoil func() error
		right []func() error
		says  string
	}{
		{"the names of counters and settings are swapped", counter.RepairMapPin, 2,
			f.swaps("maps", "counters", "settings"), f.keeps("counters", "settings"),
			`maps/counters was replaced by another map (\"settings\"`},
		{"the names of flow table and tags are swapped", counter.RepairMapPin, 2,
			f.swaps("maps", "flows", "flow_tags"), f.keeps("flows", "flow_tags"),
			`maps/flow_tags was replaced by another map (\"flows\"`},
		{"the names of two maps of one shape are swapped", counter.RepairMapPin, 2,
			f.swaps("maps", "claim_filter", "backend_filter"), f.keeps("claim_filter", "backend_filter"),
			`maps/claim_filter was replaced by another map (\"backend_filter\"`},
		{"another map is pinned in the place of the claims", counter.RepairMapPin, 1,
			f.pinsAnother("claims"), f.keeps("claims"), `maps/claims was replaced by another map (\"claims\"`},
		{"a directory is in the place of the affinity records", counter.RepairMapPin, 1, func() error {
			return errors.Join(os.Remove(f.pin("maps", "affinity")), os.MkdirAll(f.pin("maps", "affinity/full"), 0o700))
		}, f.keeps("affinity"), "maps/affinity was replaced by something that is no map"},
		{"the names of two programs' links are swapped", counter.RepairLinkPin, 2,
			f.swaps("links", in, out), []func() error{f.attachedTo(in, n.link(n.client.device).Attrs().Index), f.attachedTo(out, n.link(n.wire.device).Attrs().Index)},
			"links/" + in + " was replaced by another link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := f.repaired(c.what)
			n.must(c.spoil())
			f.eventually(c.name+" and put right", func() bool { return f.repaired(c.what) == before+c.times })
			for _, right := range c.right {
				n.must(right())
			}
			f.says(c.says)
			n.goOn(flows)
			n.everybody()
		})
	}
	f.kill()
	n.goOn(flows) // in the lane
	f.start()
	n.goOn(flows)
	if s := f.readStatus(); !s.FlowsKept || s.FlowsRestored < len(flows) || s.FlowsLost > 0 {
		t.Errorf("flows kept: %t, restored: %d, lost: %d; want %d of them", s.FlowsKept, s.FlowsRestored, s.FlowsLost, len(flows))
	}
	f.stop()
}

// TestPinsReplacedWhileItIsDown: nobody puts them right then. The next start names each pin
// that was not what it ought to be, and says how many flows that cost, or that it cannot.
func TestPinsReplacedWhileItIsDown(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(f *fastpath) func() error
		named   []string
		unknown bool
	}{
		"the names of flow table and tags are swapped": {
			func(f *fastpath) func() error { return f.swaps("maps", "flows", "flow_tags") }, []string{"maps/flows", "maps/flow_tags"}, false},
		"the flow table is removed": {
			func(f *fastpath) func() error { return func() error { return os.Remove(f.pin("maps", "flows")) } }, []string{"maps/flows"}, true},
		"another map is in the place of the flow table": {
			func(f *fastpath) func() error { return f.pinsAnother("flows") }, []string{"maps/flows"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, f := newNetwork(t), newFastpath(t, 1)
			n.serveEcho()
			f.publish(n.contents(1))
			f.start()
			f.uses(1)
			for _, vip := range vips {
				n.converse(n.client, "udp", netip.AddrPortFrom(vip, toWeb))
			}
			f.stop()
			n.must(c.spoil(f)())
			f.start()
			f.uses(1)
			s := f.readStatus()
			if s.FlowsKept || s.FlowsLostUnknown != c.unknown || (s.FlowsLost >= len(vips)) == c.unknown {
				t.Errorf("flows kept: %t, lost: %d, unknown: %t", s.FlowsKept, s.FlowsLost, s.FlowsLostUnknown)
			}
			lost := fmt.Sprintf("flows_lost=%d", s.FlowsLost)
			if c.unknown {
				lost = "flows_lost=unknown"
			}
			for _, word := range append(c.named, lost) {
				if !strings.Contains(f.log.String(), word) {
					t.Errorf("the log does not say %q\n%s", word, f.log)
				}
			}
			for _, vip := range vips {
				n.converse(n.client, "tcp", netip.AddrPortFrom(vip, toWeb))
			}
			f.stop()
		})
	}
}

// swaps exchanges the names of two pins.
func (f *fastpath) swaps(kind, one, other string) func() error {
	return func() error {
		return unix.Renameat2(unix.AT_FDCWD, f.pin(kind, one), unix.AT_FDCWD, f.pin(kind, other), unix.RENAME_EXCHANGE)
	}
}

// pinsAnother puts a map of the same name and another shape in the place of a pin.
func (f *fastpath) pinsAnother(name string) func() error {
	return func() error {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
		if err != nil {
			return err
		}
		return errors.Join(os.Remove(f.pin("maps", name)), m.Pin(f.pin("maps", name)), m.Close())
	}
}

// keeps wants the pins to be of the maps that they are of now.
func (f *fastpath) keeps(names ...string) (right []func() error) {
	for _, name := range names {
		want := f.mapID(name)
		right = append(right, func() error {
			if got := f.mapID(name); got != want {
				return fmt.Errorf("%s is of map %d, want %d", name, got, want)
			}
			return nil
		})
	}
	return right
}

// mapID is of the map that is pinned now.
func (f *fastpath) mapID(name string) ebpf.MapID {
	f.t.Helper()
	m, err := ebpf.LoadPinnedMap(f.pin("maps", name), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer m.Close()
	what, err := m.Info()
	if err != nil {
		f.t.Fatal(err)
	}
	id, _ := what.ID()
	return id
}

// attachedTo wants the pinned link to be attached to a device.
func (f *fastpath) attachedTo(name string, ifindex int) func() error {
	return func() error {
		l, err := link.LoadPinnedLink(f.pin("links", name), nil)
		if err != nil {
			return err
		}
		defer l.Close()
		what, err := l.Info()
		if err != nil {
			return err
		}
		if x := what.TCX(); x == nil || int(x.Ifindex) != ifindex {
			return fmt.Errorf("%s is not attached to device %d", name, ifindex)
		}
		return nil
	}
}
