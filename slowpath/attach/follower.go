package attach

import (
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/netdev"
)

// Trunk is the name of the kernel's side of the trunk.
const Trunk = "lace0"

const (
	settle  = 2 * time.Millisecond   // quiet awaited after the first notice of a change
	gap     = 50 * time.Millisecond  // least time between two readings
	rest    = 9                      // at least so many times the duration of a reading is rested,
	longest = time.Second            // and no longer than this: a busy machine makes readings slow
	resync  = 30 * time.Second       // reading without a notice, in case one was lost
	retry   = 500 * time.Millisecond // reading after a failure
	rewatch = time.Second            // between attempts to subscribe again
)

// Config of a Follower.
type Config struct {
	Node   string // name of this node, for Problems
	Stack  netdev.Stack
	Ranges []netip.Prefix // service ranges that are routed to the trunk; nil: see SetRanges
	Known  []table.Port   // ports of the last snapshot, whose ids go on
	// Aliases are where the aliases of the node's own addresses are: routed to the trunk like
	// ranges, those of a family that the node has.
	Aliases []netip.Prefix
	// Delivery of every port but the host's: who owns the pods' devices decides which.
	Delivery model.Delivery
	Log      *slog.Logger

	// Repaired is told of each route that was gone and is put back, by Run's goroutine; nil:
	// nobody is.
	Repaired func()
}

// Sink takes the attachments of the node whenever they, or the problems with them,
// have changed. Nothing in them is changed afterwards.
type Sink func(model.Attachments, []model.Problem)

// Follower keeps the attachments of one node up to date. Run may be called once.
type Follower struct {
	node   string
	stack  netdev.Stack
	ranges *serviceRanges
	alias  []netip.Prefix
	ids    *ids
	log    *slog.Logger

	repaired func()
	placed   map[netip.Prefix]int // device to which a range is routed

	delivery model.Delivery
	mu       sync.Mutex
	external []netip.Addr
	told     bool // external was set
	wake     chan struct{}

	reported bool
	last     model.Attachments
	problems []model.Problem
}

// New returns a Follower that has not looked at anything yet.
func New(c Config) *Follower {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &Follower{
		node: c.Node, stack: c.Stack, ranges: newRanges(c.Ranges), alias: c.Aliases, ids: newIDs(c.Known), wake: make(chan struct{}, 1), log: log,
		delivery: c.Delivery, repaired: c.Repaired, placed: map[netip.Prefix]int{},
	}
	if f.repaired == nil {
		f.repaired = func() {}
	}
	return f
}

// Run reports the attachments now and after every change, until ctx ends; then it
// returns nil. The routes of the service ranges stay: the fast path goes on without us.
func (f *Follower) Run(ctx context.Context, sink Sink) error {
	for ctx.Err() == nil {
		// A failed subscription is retried for ever, and the network read meanwhile:
		// an agent that gives up would leave the node with yesterday's pods.
		watch, stop := context.WithCancel(ctx)
		notices, err := f.stack.Watch(watch)
		if err != nil {
			f.log.Error("the network cannot be watched, it is read every second instead", "error", err)
		}
		f.follow(ctx, notices, sink)
		stop()
		wait(ctx, rewatch)
	}
	return nil
}

// follow reads after every notice until ctx ends or the notices do. Without notices
// it reads once.
func (f *Follower) follow(ctx context.Context, notices <-chan struct{}, sink Sink) {
	for {
		next, began := resync, time.Now()
		if err := f.pass(sink); err != nil {
			f.log.Error("the network cannot be read, the last attachments stand", "error", err)
			next = retry
		} else if f.owing() {
			next = retry
		}
		// However much changes, a tenth of one processor is what following it costs.
		if notices == nil || !wait(ctx, max(gap, min(rest*time.Since(began), longest))) {
			return
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-f.wake:
			timer.Stop()
		case _, open := <-notices:
			timer.Stop()
			if !open {
				return
			}
			wait(ctx, settle)
		}
	}
}

// owing reports whether something is expected to come right by itself without a
// notice, such as an IPv6 source address whose uniqueness is still being checked.
func (f *Follower) owing() bool {
	for _, p := range f.problems {
		if p.Reason == reasonRouteRefused {
			return true
		}
	}
	return false
}

// pass reads the network once, repairs the routes and reports what changed.
func (f *Follower) pass(sink Sink) error {
	view, err := netdev.Read(f.stack)
	if err != nil {
		return err
	}
	ranges, known := f.ranges.read(view)
	found, problems := derive(view, f.ids, ranges)
	deliver(found.Ports, f.delivery)
	if known {
		problems = append(problems, f.ensure(view, found, ranges)...)
	}
	sortProblems(problems)
	if f.reported && reflect.DeepEqual(found, f.last) && reflect.DeepEqual(problems, f.problems) {
		return nil
	}
	f.reported, f.last, f.problems = true, found, problems
	sink(found, problems)
	return nil
}

// wait sleeps for d and reports false when ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
