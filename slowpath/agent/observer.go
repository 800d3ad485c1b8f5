package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/health"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/servicehealth"
	"lace-cni.io/lace/slowpath/source"
)

// lookEvery is how often the fast path is looked at without being asked about.
const lookEvery = time.Second

// published is what the observer needs of a publish.Publisher.
type published interface {
	State() *publish.State
	Problems() []model.Problem
	Queued() time.Time
	LastQueued() time.Time
	Pending(source.Kind) int
}

// observer keeps an eye on the other process: whether it lives, and since when it has
// not used what was published.
type observer struct {
	config     *Config
	publisher  published
	tally      *tally
	mended     *repairs
	ports      *portWatch
	proxies    *proxyWatch
	forwarding *forwardingWatch
	pathless   *pathlessWatch
	asked      *servicehealth.Set
	applied    *applied
	started    time.Time
	log        *slog.Logger

	mu          sync.Mutex
	seen        time.Time     // the fast path alive, last
	unapplied   time.Time     // since when; zero: the last snapshot is in use, or there is none
	programming time.Duration // from change to publication, of the last change
	said        string        // last state of affairs that was logged
}

func newObserver(c *Config, p published, t *tally, mended *repairs) *observer {
	return &observer{config: c, publisher: p, tally: t, mended: mended, started: time.Now(), log: c.Log}
}

// run looks every second until ctx ends. The first second is left for starting.
func (o *observer) run(ctx context.Context) error {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			o.watch(look(o.config), time.Now())
		}
	}
}

// watch notes since when the fast path is behind, and logs when that changes.
func (o *observer) watch(f fastpath, now time.Time) {
	waiting := o.waiting(f)
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.alive {
		o.seen = now
	}
	switch state := o.publisher.State(); {
	case state == nil || f.uses(state.Generation):
		o.unapplied = time.Time{}
	case o.unapplied.IsZero():
		o.unapplied = now
	}
	fresh := f.alive && o.said == "" && o.unapplied.Equal(now)
	if waiting == o.said || fresh { // a snapshot that was just published is on its way
		return
	}
	o.said = waiting
	if waiting == "" {
		o.log.Info("ready: the fast path uses what was published")
		return
	}
	o.log.Warn("not ready", "waiting", waiting)
}

// programmed notes how long a change took from the cluster to its publication.
func (o *observer) programmed(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.programming = d
}

// uses reports whether a living fast path uses that generation or a later one.
func (f *fastpath) uses(generation uint64) bool {
	return f.alive && f.totals.Gauges[counter.Generation] >= generation
}

// waiting says what the node waits for before it is ready; empty: nothing.
func (o *observer) waiting(f fastpath) string {
	state := o.publisher.State()
	switch {
	case o.tally.read().synced.IsZero():
		return "the source " + o.config.SourceName + " has not delivered everything yet"
	case state == nil:
		return "the first snapshot is not published yet"
	case !f.alive:
		return f.message
	case !f.uses(state.Generation):
		return "the fast path does not use the last snapshot yet; if that lasts, look at its log"
	case !slices.ContainsFunc(state.Attachments.Ports, isHost):
		return "the trunk that the fast path made (" + attach.Trunk + ") has not been found yet: the node itself does not reach Services"
	}
	return ""
}

func isHost(p model.Port) bool { return p.Kind == model.PortHost }

// down says since when the fast path has given no sign of life; zero: it lives. Of one
// that has never been seen it is since this agent began to look.
func (o *observer) down(f fastpath, now time.Time) time.Time {
	if f.alive {
		return time.Time{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	since := later(o.started, o.seen)
	if f.silence > 0 {
		since = later(since, now.Add(-f.silence))
	}
	return since
}

// health is the State for probes.
func (o *observer) health() health.State { return o.healthOf(look(o.config)) }

// sight is what health check ports of Services answer by.
func (o *observer) sight() servicehealth.Sight {
	f := look(o.config)
	s := o.healthOf(f)
	out := servicehealth.Sight{Healthy: s.Works(time.Now())}
	if f.totals != nil {
		out.InUse = f.totals.Gauges[counter.Generation]
	}
	return out
}

func (o *observer) healthOf(f fastpath) health.State {
	o.mu.Lock()
	unapplied := o.unapplied
	o.mu.Unlock()
	passed := o.tally.read()
	s := health.State{Unapplied: unapplied, Down: o.down(f, time.Now()), Eligible: passed.eligible}
	if queued := o.publisher.Queued(); !queued.IsZero() && !passed.synced.IsZero() {
		// Nothing is published before the source has delivered everything: that is
		// waiting, not being stuck.
		s.Queued = later(queued, passed.synced)
	}
	if state := o.publisher.State(); state != nil {
		s.Updated = state.Published
	}
	return s
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
