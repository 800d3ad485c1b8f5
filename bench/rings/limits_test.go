package rings

import (
	"fmt"
	"testing"
	"time"

	"github.com/asavie/xdp"
	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/xdp/xsk"
)

// TestWhyOwnRings holds what decided against github.com/asavie/xdp, and that our rings do
// better. When one of these fails because the library changed, the decision
// docs/decisions/0002-own-rings.md is to be looked at again.
func TestWhyOwnRings(t *testing.T) {
	t.Run("a hundred frames by one call", func(t *testing.T) {
		enter(t)
		theirs, ours := newTrack(t, "asavie"), newTrack(t, "own")
		a, o := newAsavie(t, theirs, 64), newOwn(t, ours, 64)
		descs := a.socket.GetDescs(100)
		for i := range descs {
			descs[i].Len = 60
			header(a.socket.GetFrame(descs[i]))
		}
		if n := a.socket.Transmit(descs); n != 100 {
			t.Errorf("asavie took %d frames", n)
		}
		batch := make([]xsk.Frame, 100)
		o.umem.Allocate(batch)
		for i := range batch {
			batch[i].Len = 60
			header(o.umem.Bytes(batch[i]))
		}
		if _, err := o.socket.Transmit(batch); err != nil {
			t.Fatal(err)
		}
		if err := o.socket.Kick(); err != nil {
			t.Fatal(err)
		}
		if err := await("our hundred arrived", func() bool { return ours.back() == 100 }); err != nil {
			t.Error(err)
		}
		if got := theirs.back(); got != 32 {
			t.Errorf("of asavie's hundred %d arrived: it used to be 32", got)
		}
	})

	t.Run("link down", func(t *testing.T) {
		enter(t)
		theirs, ours := newTrack(t, "asavie"), newTrack(t, "own")
		a, o := newAsavie(t, theirs, 64), newOwn(t, ours, 64)
		for _, tr := range []*track{theirs, ours} {
			if err := netlink.LinkSetDown(tr.far); err != nil {
				t.Fatal(err)
			}
		}
		if p := panics(func() { a.socket.Transmit(a.socket.GetDescs(1)) }); p == nil {
			t.Error("asavie no longer panics")
		}
		var one [1]xsk.Frame
		o.umem.Allocate(one[:])
		one[0].Len = 60
		var err error
		if p := panics(func() { o.socket.Transmit(one[:]); err = o.socket.Kick() }); p != nil || err == nil {
			t.Errorf("ours: panic %v, error %v", p, err)
		}
	})

	t.Run("the queue after a close", func(t *testing.T) {
		enter(t)
		theirs, ours := newTrack(t, "asavie"), newTrack(t, "own")
		a := newAsavie(t, theirs, 64)
		if err := a.socket.Close(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Second)
		var err error
		for err = fmt.Errorf("not tried"); err != nil && time.Now().Before(deadline); {
			var s *xdp.Socket
			if s, err = xdp.NewSocket(theirs.far.Attrs().Index, 0, nil); err == nil {
				s.Close()
			}
		}
		if err == nil {
			t.Error("asavie's queue is free again after a close: it used to stay taken")
		}
		o := newOwn(t, ours, 64)
		if err := o.socket.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := xsk.Open(o.umem, xsk.Config{Device: ours.far.Attrs().Name})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

func panics(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}
