package netdev_test

import (
	"context"
	"errors"
	"testing"

	"lace-cni.io/lace/slowpath/netdev"
)

func TestFakeRefusesWhatTheKernelWouldRefuse(t *testing.T) {
	cases := []struct {
		name string
		do   func(f *netdev.Fake) error
		want error
	}{
		{"a name twice", func(f *netdev.Fake) error { _, err := f.AddLink(netdev.Link{Name: "eth0", MTU: 1500}); return err }, netdev.ErrInvalid},
		{"a name that is too long", func(f *netdev.Fake) error {
			_, err := f.AddLink(netdev.Link{Name: "sixteen-letters-", MTU: 1500})
			return err
		}, netdev.ErrInvalid},
		{"an MTU of nothing", func(f *netdev.Fake) error { _, err := f.AddLink(netdev.Link{Name: "eth1"}); return err }, netdev.ErrInvalid},
		{"a master that is no bridge", func(f *netdev.Fake) error {
			_, err := f.AddLink(netdev.Link{Name: "eth1", MTU: 1500, Master: 2})
			return err
		}, netdev.ErrInvalid},
		{"removing a device that is not there", func(f *netdev.Fake) error { return f.DeleteLink("eth1") }, netdev.ErrNotFound},
		{"an address twice", func(f *netdev.Fake) error { return f.AddAddress("eth0", "192.0.2.1/24") }, netdev.ErrInvalid},
		{"an address of no device", func(f *netdev.Fake) error { return f.AddAddress("eth1", "192.0.2.1/24") }, netdev.ErrNotFound},
		{"removing an address that is not there", func(f *netdev.Fake) error { return f.DeleteAddress("eth0", "192.0.2.2/24") }, netdev.ErrNotFound},
		{"a neighbour on a device that is down", func(f *netdev.Fake) error { return f.SetNeighbour("down0", "192.0.2.2", netdev.MAC{2}) }, netdev.ErrDown},
		{"a station behind a device that is no bridge port", func(f *netdev.Fake) error { return f.SetStation("eth0", netdev.MAC{2}) }, netdev.ErrInvalid},
		{"the other end of a device that has none", func(f *netdev.Fake) error { return f.SetPeer("eth0", netdev.Peer{}) }, netdev.ErrInvalid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(fakeNode(t)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// fakeNode has eth0 with an address and down0, which is down.
func fakeNode(t *testing.T) *netdev.Fake {
	t.Helper()
	f := netdev.NewFake()
	for _, l := range []netdev.Link{{Name: "eth0", MTU: 1500, Up: true, Ethernet: true}, {Name: "down0", MTU: 1500}} {
		if _, err := f.AddLink(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.AddAddress("eth0", "192.0.2.1/24"); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFakeTakesRoutesAwayWithTheirDeviceAndSource(t *testing.T) {
	cases := []struct {
		name string
		do   func(f *netdev.Fake) error
		want int // routes left of two
	}{
		{"nothing happens", func(*netdev.Fake) error { return nil }, 2},
		{"the device goes down", func(f *netdev.Fake) error { return f.SetLink(netdev.Link{Index: 2, Name: "eth0", MTU: 1500}) }, 0},
		{"the device goes", func(f *netdev.Fake) error { return f.DeleteLink("eth0") }, 0},
		{"the source address goes", func(f *netdev.Fake) error { return f.DeleteAddress("eth0", "192.0.2.1/24") }, 0},
		{"another address goes", func(f *netdev.Fake) error {
			return errors.Join(f.AddAddress("eth0", "198.51.100.1/24"), f.DeleteAddress("eth0", "198.51.100.1/24"))
		}, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := fakeNode(t)
			if err := f.ReplaceRoute(routeBy("10.0.0.0/8", "192.0.2.2", "192.0.2.1", "eth0")(f)); err != nil {
				t.Fatal(err)
			}
			if err := c.do(f); err != nil {
				t.Fatal(err)
			}
			if got, _ := f.Routes(); len(got) != c.want {
				t.Errorf("routes left: %v, want %d", got, c.want)
			}
		})
	}
}

func TestFakeHoldsOneNoticeForASlowReader(t *testing.T) {
	f := fakeNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	notices, err := f.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"192.0.2.5/24", "192.0.2.6/24"} {
		if err := f.AddAddress("eth0", a); err != nil {
			t.Fatal(err)
		}
	}
	<-notices
	select {
	case <-notices:
		t.Error("two changes before the first was read make one notice, got two")
	default:
	}
	cancel()
	eventually(t, "the watch ends", func() bool {
		select {
		case _, open := <-notices:
			return !open
		default:
			return false
		}
	})
}
