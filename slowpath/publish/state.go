package publish

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// State is what was published last, for readers. Nothing in it is ever changed.
type State struct {
	Generation  uint64
	Published   time.Time // when the snapshot of that generation was written
	Bytes       int       // of the snapshot
	Node        model.Node
	Ranges      []netip.Prefix   // service ranges; empty: none is known
	Services    []*model.Service // those that are proxied, sorted by namespace and name
	Attachments model.Attachments
	External    []netip.Addr    // addresses outside the service ranges that are Services' whole, sorted
	Unanswered  []int           // families, 4 and 6, whose node ports no address of the node answers though one is meant
	Lost        model.Lost      // what Services ask for and somebody else has
	Problems    []model.Problem // sorted by kind and object
}

// Publication is one snapshot that was written.
type Publication struct {
	Generation uint64
	Began      time.Time // when the work on its changes began
	Endpoints  []Trigger // changes of endpoints in it whose moment the cluster has told
}

// Trigger is when endpoints changed in the cluster.
type Trigger struct {
	Family string // IPv4 or IPv6
	At     time.Time
}

// State is what was published last; nil before the first publication. Safe for
// concurrent use.
func (p *Publisher) State() *State { return p.state.Load() }

// Changed returns a channel that is closed when there is another State. To wait for a
// condition, ask for the channel first and look at the State then.
func (p *Publisher) Changed() <-chan struct{} {
	p.changedMu.Lock()
	defer p.changedMu.Unlock()
	return p.changed
}

func (p *Publisher) show(s *State) {
	p.state.Store(s)
	p.changedMu.Lock()
	defer p.changedMu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Queued is when the oldest change came that is not published yet; zero: all are. Safe
// for concurrent use.
func (p *Publisher) Queued() time.Time { return p.inbox.queued() }

// LastQueued is when the last change came, published or not; zero: none has. Safe for
// concurrent use.
func (p *Publisher) LastQueued() time.Time { return p.inbox.latest() }

// Pending is how many objects of a kind have changes that are not worked on yet. Safe for
// concurrent use.
func (p *Publisher) Pending(k source.Kind) int { return p.inbox.pending(k) }

// Problems are those of the State, or, before the first publication, those that keep it
// from coming, such as a source that cannot be read. Safe for concurrent use; what is
// returned must not be changed.
func (p *Publisher) Problems() []model.Problem {
	if s := p.State(); s != nil {
		return s.Problems
	}
	if early := p.early.Load(); early != nil {
		return *early
	}
	return nil
}

// Sorted sorts Problems in place in the order of a State, and returns them.
func Sorted(ps []model.Problem) []model.Problem {
	slices.SortStableFunc(ps, func(a, b model.Problem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return ps
}
