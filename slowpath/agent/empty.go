package agent

import (
	"maps"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
)

// emptyFor is how long a Service must have been without endpoints before that is told: a
// restart of its only pod need not be.
const emptyFor = 10 * time.Second

// emptiness notes which Services have lost their last endpoint. One that had none when the
// agent began, or was made without any, has lost nothing. Of the nodes of a cluster one
// that had such an endpoint tells it, and all of them only when no node is known to have
// had it. Not safe for concurrent use.
type emptiness struct {
	node  string
	last  []*model.Service         // as seen last, by name
	ours  map[model.Name]bool      // that have endpoints: whether this node tells when they have none
	since map[model.Name]time.Time // that have none
}

func newEmptiness(node string) *emptiness {
	return &emptiness{node: node, ours: map[model.Name]bool{}, since: map[model.Name]time.Time{}}
}

// see takes all Services, sorted by name. Only those that changed since are looked at.
func (e *emptiness) see(services []*model.Service, now time.Time) {
	was := e.last
	for _, s := range services {
		for len(was) > 0 && was[0].Name.Compare(s.Name) < 0 {
			e.forget(was[0].Name)
			was = was[1:]
		}
		if len(was) > 0 && was[0].Name == s.Name {
			same := was[0] == s
			was = was[1:]
			if same {
				continue
			}
		}
		e.note(s, now)
	}
	for _, s := range was {
		e.forget(s.Name)
	}
	e.last = services
}

func (e *emptiness) forget(n model.Name) {
	delete(e.ours, n)
	delete(e.since, n)
}

func (e *emptiness) note(s *model.Service, now time.Time) {
	if usable(s) {
		delete(e.since, s.Name)
		e.ours[s.Name] = e.tells(s)
		return
	}
	if e.ours[s.Name] {
		e.since[s.Name] = now
	}
	delete(e.ours, s.Name)
}

// usable says whether some port of the Service has an endpoint anywhere that may be used.
func usable(s *model.Service) bool {
	for i := range s.Ports {
		for _, c := range s.Ports[i].Families {
			if c.Internal.Any {
				return true
			}
		}
	}
	return false
}

// tells says whether this node has an endpoint of the Service, or no node is known to.
func (e *emptiness) tells(s *model.Service) bool {
	known := false
	for i := range s.Ports {
		for _, c := range s.Ports[i].Families {
			for j := range c.Endpoints {
				if c.Endpoints[j].Node == e.node {
					return true
				}
				known = known || c.Endpoints[j].Node != ""
			}
		}
	}
	return !known
}

// told are the Services that have been empty for long enough, and when to ask again; zero:
// not before something changes.
func (e *emptiness) told(now time.Time) (out []model.Problem, again time.Time) {
	for _, n := range slices.SortedFunc(maps.Keys(e.since), model.Name.Compare) {
		due := e.since[n].Add(emptyFor)
		if now.Before(due) {
			if again.IsZero() || due.Before(again) {
				again = due
			}
			continue
		}
		out = append(out, model.Problem{
			Kind: "Service", Object: n.String(), Reason: "NoEligibleEndpoints",
			Message: "the last endpoint that could be used is gone: clients are refused until one is ready; look at the Service's pods",
		})
	}
	return out, again
}
