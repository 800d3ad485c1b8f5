package servicehealth

import (
	"sync"

	"lace-cni.io/lace/control/model"
)

// behind is how many generations the fast path may be behind before answers of those in
// between are forgotten; it then is far from well, and the oldest answer holds until it
// catches up.
const behind = 64

// edition is what holds from a generation on.
type edition struct {
	generation uint64
	counts     map[model.Name]counts
}

// ledger keeps the answers of the generation in use and of those that are to come. Safe
// for concurrent use.
type ledger struct {
	mu       sync.Mutex
	editions []edition // by generation
	inUse    uint64    // as seen last; 0: never
	counted  map[*model.Service]counts
}

// add notes what holds from a generation on. One that is there already is replaced: its
// snapshot was not written, or holds with this, too. One that is older begins anew.
func (l *ledger) add(generation uint64, node string, services []*model.Service) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, counted := edition{generation, map[model.Name]counts{}}, map[*model.Service]counts{}
	for _, s := range services {
		if s.HealthPort == 0 {
			continue
		}
		c, known := l.counted[s]
		if !known {
			c = count(s, node)
		}
		next.counts[s.Name], counted[s] = c, c
	}
	l.counted = counted
	for n := len(l.editions); n > 0 && l.editions[n-1].generation >= generation; n-- {
		l.editions = l.editions[:n-1]
	}
	if len(l.editions) > behind {
		l.editions = append(l.editions[:1], l.editions[2:]...)
	}
	l.editions = append(l.editions, next)
}

// local is how many endpoints of the Service are on this node, by the tables in use.
// generation is theirs; 0: not known, as while the fast path starts: then the last one holds.
func (l *ledger) local(n model.Name, family int, generation uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != 0 {
		l.inUse = generation
	}
	holds := -1
	for i := range l.editions {
		if l.editions[i].generation <= l.inUse {
			holds = i
		}
	}
	if holds < 0 {
		return 0
	}
	l.editions = l.editions[holds:]
	return l.editions[0].counts[n][family]
}
