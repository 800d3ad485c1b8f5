package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/source"
)

// retryAfter is how long a snapshot that could not be written waits for its next try.
const retryAfter = time.Second

// Publisher is the sink of a source and of the attachments. Make one with New.
type Publisher struct {
	config Config
	inbox  inbox
	work   work
	said   string // why nothing was published, as logged last; empty: all is well

	state     atomic.Pointer[State]
	early     atomic.Pointer[[]model.Problem] // before the first State
	changedMu sync.Mutex
	changed   chan struct{}
}

var _ source.Sink = (*Publisher)(nil)

// New opens the last snapshot, so that ids and generations go on from it. A file that is
// damaged or of another layout is left where it is and replaced by the first
// publication.
func New(c Config) (*Publisher, error) {
	c.complete()
	previous, generation, err := last(&c)
	if err != nil {
		return nil, err
	}
	compiler := compile.New(previous)
	compiler.SetSettings(c.Settings)
	if previous != nil {
		if err := previous.Close(); err != nil {
			return nil, err
		}
	}
	return &Publisher{
		config: c, inbox: newInbox(), work: newWork(&c, compiler, generation),
		changed: make(chan struct{}),
	}, nil
}

// last returns the last snapshot, if there is one, and its generation.
func last(c *Config) (*table.Snapshot, uint64, error) {
	s, err := table.Open(c.Path)
	switch {
	case err == nil:
		return s, s.Generation(), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, nil
	case errors.Is(err, table.ErrDamaged), errors.Is(err, table.ErrLayout):
		// Which generation it had nobody can tell; the clock is beyond it.
		c.Log.Warn("the last snapshot cannot be used: flows will be looked at anew", "error", err)
		return nil, uint64(time.Now().Unix()), nil
	}
	return nil, 0, fmt.Errorf("the last snapshot cannot be read: %w", err)
}

// Apply implements source.Sink.
func (p *Publisher) Apply(changes []source.Change, problems []model.Problem) {
	p.inbox.post(func(m *mail) {
		for _, c := range changes {
			m.add(c)
		}
		m.sourceProblems, m.told = problems, true
	})
}

// Synced implements source.Sink.
func (p *Publisher) Synced() { p.inbox.post(func(m *mail) { m.synced = true }) }

// SetAttachments replaces ports and routes, and the Problems that they have. Safe for
// concurrent use. What is given must not be changed afterwards.
func (p *Publisher) SetAttachments(a model.Attachments, problems []model.Problem) {
	p.inbox.post(func(m *mail) { m.attached = &attached{a, problems} })
}

// Run publishes until ctx ends, and then returns nil. A file that somebody else removes,
// replaces or changes is written again within Config.Check, under the next generation.
func (p *Publisher) Run(ctx context.Context) error {
	retry := time.NewTimer(0)
	retry.Stop()
	defer retry.Stop()
	check := time.NewTicker(p.config.Check)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-check.C:
			if !p.check() {
				continue
			}
		case <-p.inbox.wake:
			if !p.settle(ctx) {
				return nil
			}
		case <-retry.C:
		}
		if err := p.publish(ctx); ctx.Err() == nil {
			p.report(err, retry)
		}
	}
}

// report logs why nothing is published once, and has it tried again until it is.
func (p *Publisher) report(err error, retry *time.Timer) {
	said := ""
	if err != nil {
		said = err.Error()
		retry.Reset(retryAfter)
	}
	switch {
	case said == p.said:
	case err != nil:
		p.config.Log.Error("snapshot not published, the last one stays in use, trying again every second", "error", err)
	default:
		p.config.Log.Info("snapshots are published again")
	}
	p.said = said
}

// check says whether the file is not the one that was written and is to be written anew.
func (p *Publisher) check() bool {
	what := p.work.tampered()
	if what == "" {
		return false
	}
	p.config.Log.Warn("somebody else changed the snapshot file, it is written again; leave it alone", "path", p.config.Path, "what", what)
	p.work.unwritten = true
	p.config.Repaired()
	return true
}

// settle waits until no more changes come for a moment; false: ctx ended.
func (p *Publisher) settle(ctx context.Context) bool {
	quiet, late := time.NewTimer(p.config.Settle), time.NewTimer(p.config.MaxDelay)
	defer quiet.Stop()
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.inbox.wake:
			quiet.Reset(p.config.Settle)
		case <-quiet.C:
			return true
		case <-late.C:
			return true
		}
	}
}

// publish works on what came in, and writes a snapshot if the tables differ.
func (p *Publisher) publish(ctx context.Context) error {
	since := p.inbox.queued()
	p.work.began = time.Now()
	p.work.take(p.inbox.take())
	if !p.work.ready() {
		problems := p.work.allProblems()
		p.early.Store(&problems)
		return nil
	}
	if err := p.work.resolve(ctx); err != nil {
		return err
	}
	next, err := p.work.write()
	if err != nil {
		if was := p.state.Load(); was != nil {
			p.show(p.work.failed(was, err))
		} else {
			problems := p.work.withFailure(err)
			p.early.Store(&problems)
		}
		return err
	}
	p.show(next)
	p.inbox.done()
	if !since.IsZero() {
		p.config.Took(time.Since(since))
	}
	return nil
}
