package dir

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/slowpath/source"
)

// Defaults of a Dir.
const (
	DefaultSettle = 50 * time.Millisecond
	DefaultPoll   = time.Second
)

// Dir is a source that reads a folder. The fields are set before Run.
type Dir struct {
	Path   string
	Settle time.Duration // how long a file must be quiet; at most 20 times that is waited
	Poll   time.Duration // how often the folder is looked at without a notice
	Log    *slog.Logger

	places atomic.Pointer[Places] // of the last look; nil: there was none
}

var _ source.Placer = (*Dir)(nil)

// New returns a source over the folder at path, with default times.
func New(path string) *Dir {
	return &Dir{Path: path, Settle: DefaultSettle, Poll: DefaultPoll, Log: slog.Default()}
}

// Run implements source.Source. A folder that is not there yet, or not readable, is a
// Problem and is waited for; the source is synced when it was read, and every file in it
// that was being written was quiet, or did not become quiet in time. A folder on a
// server that does not answer does not keep Run from returning.
func (d *Dir) Run(ctx context.Context, sink source.Sink) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.follow(ctx, sink)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(2 * MaxWait):
		d.Log.Warn("the folder does not answer and is left", "path", d.Path)
	}
	return nil
}

// follow looks at the folder until ctx ends.
func (d *Dir) follow(ctx context.Context, sink source.Sink) {
	w := watch(d.Path, d.Log)
	defer w.close()
	r := run{folder: newFolder(d.Path, d.Settle), sink: sink, places: &d.places, log: d.Log}
	r.patience.stop = ctx.Done()
	poll := time.NewTicker(d.Poll)
	defer poll.Stop()
	r.pass(time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.notices:
			r.pass(time.Now())
		case <-r.again:
			r.pass(time.Now())
		case <-poll.C:
			w.renew()
			r.pass(time.Now())
		}
	}
}

// run is one Run.
type run struct {
	*folder
	sink   source.Sink
	places *atomic.Pointer[Places]
	log    *slog.Logger
	said   string    // why the folder cannot be read, as logged last
	first  time.Time // when the folder could be read first
	synced bool
	again  <-chan time.Time
}

// tell logs when the folder itself cannot be read, and when it can again.
func (r *run) tell() {
	now := ""
	if len(r.unread) > 0 {
		now = r.unread[0].Message
	}
	switch {
	case now == r.said:
		return
	case now != "":
		r.log.Warn(now, "path", r.path)
	default:
		r.log.Info("the folder can be read now", "path", r.path)
	}
	r.said = now
}

func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func (r *run) pass(now time.Time) {
	out := r.look(now, now)
	r.again = nil
	if out.again > 0 {
		r.again = time.After(out.again)
	}
	r.tell()
	if stopped(r.patience.stop) { // what was not waited for is no Problem
		return
	}
	where := r.folder.places
	r.places.Store(&where) // before anybody hears of a Problem there
	if out.news {
		r.sink.Apply(out.changes, out.problems)
	}
	if r.synced || !out.readable {
		return
	}
	if r.first.IsZero() {
		r.first = now
	}
	if out.again == 0 || now.Sub(r.first) > r.most {
		r.synced = true
		r.sink.Synced()
	}
}
