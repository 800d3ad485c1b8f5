package publish

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// Config of a Publisher.
type Config struct {
	Node     string        // name of this node
	Path     string        // snapshot file, usually <state-dir>/snapshot
	Settle   time.Duration // quiet time awaited before a publication; 0: 2 ms
	MaxDelay time.Duration // longest wait while changes keep coming; 0: 20 ms
	Latency  func(time.Duration)
	Log      *slog.Logger
}

// State is what was published last, for readers. Nothing in it is ever changed.
type State struct {
	Generation  uint64
	Published   time.Time
	Bytes       int
	Node        model.Node
	Services    []*model.Service // sorted by namespace and name
	Attachments model.Attachments
	Problems    []model.Problem
}

// Publisher owns the objects and the snapshot file.
type Publisher struct{ state atomic.Pointer[State] }

var _ source.Sink = (*Publisher)(nil)

// New opens the last snapshot, so that ids and generations go on.
func New(c Config) (*Publisher, error) { return &Publisher{}, nil }

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Apply implements source.Sink.
func (p *Publisher) Apply(changes []source.Change, problems []model.Problem) {}

// Synced implements source.Sink.
func (p *Publisher) Synced() {}

// SetAttachments replaces ports and routes; problems are those of the attachments.
func (p *Publisher) SetAttachments(a model.Attachments, problems []model.Problem) {}

// State is what was published last; nil before the first publication.
func (p *Publisher) State() *State { return p.state.Load() }

// Changed returns a channel that is closed at the next publication.
func (p *Publisher) Changed() <-chan struct{} { return nil }

// Queued is when the oldest change came that is not published yet; zero when none waits.
// Health (livez) and metrics go by it, so it must not depend on Run making progress.
func (p *Publisher) Queued() time.Time { return time.Time{} }
