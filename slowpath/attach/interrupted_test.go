package attach

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

// interrupted is a stack that cannot look at the other end of a device for a while.
type interrupted struct {
	netdev.Stack
	failing atomic.Bool
	failed  chan struct{}
}

func (s *interrupted) Peer(l netdev.Link) (netdev.Peer, error) {
	if !s.failing.Load() {
		return s.Stack.Peer(l)
	}
	select {
	case s.failed <- struct{}{}:
	default:
	}
	return netdev.Peer{}, errors.New("the dump was interrupted")
}

// TestAReadingThatIsInterruptedLosesNoPod: a pod of which only the other end of its device
// tells is a port all the time, although looking there fails now and then.
func TestAReadingThatIsInterruptedLosesNoPod(t *testing.T) {
	w := newWorld(t)
	w.bridge("cni0", "10.244.1.1/24")
	w.bridged("vethA", "cni0")
	w.holds("vethA", "10.244.1.5")
	s := &interrupted{Stack: w.Fake, failed: make(chan struct{}, 1)}
	r := new(record)
	var seen, lost atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- New(Config{Node: "n1", Stack: s, Ranges: ranges}).Run(ctx, func(a model.Attachments, p []model.Problem) {
			has := idsOf(a)["vethA"] != 0
			lost.Store(lost.Load() || seen.Load() && !has)
			seen.Store(seen.Load() || has)
			r.sink(a, p)
		})
	}()
	defer func() { cancel(); <-done }()
	r.await(t, "the pod is a port", port("vethA"))
	s.failing.Store(true)
	w.routed("vethB", "10.244.1.6")
	select {
	case <-s.failed:
	case <-time.After(patience):
		t.Fatal("the network was not read again")
	}
	s.failing.Store(false)
	r.await(t, "the other pod is a port", port("vethB"))
	if lost.Load() {
		t.Error("the pod was no port for a while")
	}
}
