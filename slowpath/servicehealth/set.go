package servicehealth

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/listener"
)

// Reason is that of the Problem of a port that cannot be had, and of its Event.
const Reason = "FailedToStartServiceHealthcheck"

// retryAfter is how long a port that could not be had waits for its next try.
const retryAfter = 5 * time.Second

// Config of a Set.
type Config struct {
	Node    string        // name of this node
	Look    func() Sight  // asked with each question, at most once in a millisecond
	All     bool          // listen on every address of the node, whatever Announce says
	Own     []uint16      // TCP ports at which the agent itself answers
	Retry   time.Duration // between tries for a port that cannot be had; 0: 5 s
	Changed func()        // told when Problems are others; may be nil
	Log     *slog.Logger  // nil: slog.Default
}

// Sight is what answers depend on at a moment.
type Sight struct {
	InUse   uint64 // generation of the tables that the fast path uses; 0: none, or not known
	Healthy bool   // whether this node's Lace does its work
}

// Set is the health check ports of a node. Make one with New. Its methods are safe for
// concurrent use.
type Set struct {
	config  Config
	ledger  ledger
	wake    chan struct{} // of one
	serving sync.WaitGroup
	pool    *listener.Pool

	mu       sync.Mutex
	wanted   map[place]bool
	problems []model.Problem
	seen     Sight
	looked   time.Time // when

	ports map[place]*port // Run's alone
}

// New makes a Set without ports.
func New(c Config) *Set {
	if c.Retry == 0 {
		c.Retry = retryAfter
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Set{config: c, wake: make(chan struct{}, 1), pool: listener.NewPool(maxTogether), ports: map[place]*port{}}
}

// Announce says what holds as soon as the fast path uses the generation. It must be called
// before that can be, and again when something has changed that the tables do not show. The
// Services are not changed afterwards. at are the addresses to listen on.
func (s *Set) Announce(generation uint64, services []*model.Service, at []netip.Addr) {
	s.ledger.add(generation, s.config.Node, services)
	next := places(services, s.config.All, at)
	s.mu.Lock()
	same := maps.Equal(next, s.wanted)
	s.wanted = next
	s.mu.Unlock()
	if !same {
		s.stir()
	}
}

// Problems are the ports that cannot be had now.
func (s *Set) Problems() []model.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems
}

func (s *Set) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run opens and closes ports until ctx ends; then it closes all and returns nil.
func (s *Set) Run(ctx context.Context) error {
	retry := time.NewTimer(0)
	retry.Stop()
	defer retry.Stop()
	for {
		if failed := s.reconcile(ctx); failed {
			retry.Reset(s.config.Retry)
		}
		select {
		case <-ctx.Done():
			for p := range s.ports {
				s.close(p)
			}
			s.serving.Wait()
			return nil
		case <-s.wake:
		case <-retry.C:
		}
	}
}

// reconcile brings the ports in line with what is wanted, and says whether some are missing.
func (s *Set) reconcile(ctx context.Context) (failed bool) {
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	for p, o := range s.ports {
		if !wanted[p] || o.dead.Load() {
			s.close(p)
		}
	}
	var problems []model.Problem
	for _, p := range slices.SortedFunc(maps.Keys(wanted), place.compare) {
		if s.ports[p] != nil {
			continue
		}
		o, err := s.open(ctx, p)
		if err == nil {
			s.ports[p] = o
			continue
		}
		if said := s.problem(p, err); !slices.Contains(problems, said) {
			problems = append(problems, said)
		}
	}
	s.tell(problems)
	return len(problems) > 0
}

// compare orders places by Service and address, so that of two that exclude each other it
// is always the same one that is open.
func (p place) compare(q place) int {
	if c := p.service.Compare(q.service); c != 0 {
		return c
	}
	return p.at.Compare(q.at)
}

// close ends a port with its connections: who asks again is refused.
func (s *Set) close(p place) {
	_ = s.ports[p].http.Close()
	delete(s.ports, p)
}

// tell notes what is wrong now, and logs what is new of it.
func (s *Set) tell(problems []model.Problem) {
	s.mu.Lock()
	was := s.problems
	s.problems = problems
	s.mu.Unlock()
	if slices.Equal(was, problems) {
		return
	}
	for _, p := range was {
		if !slices.Contains(problems, p) {
			s.config.Log.Info("health check port: no longer a problem", "service", p.Object)
		}
	}
	s.config.Changed()
}

// fresh is how long what was seen is taken to be the same without another look, so that
// many questions cost few.
const fresh = time.Millisecond

func (s *Set) look() Sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.looked.IsZero() || now.Sub(s.looked) > fresh {
		s.seen, s.looked = s.config.Look(), now
	}
	return s.seen
}
