package agent

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/health"
	"lace-cni.io/lace/slowpath/source"
)

// tally stands between source and publisher and notes what passes: how many objects
// there are, whether all have come, and whether this node may get traffic.
type tally struct {
	next source.Sink
	node string

	mu       sync.Mutex
	known    map[source.Kind]map[model.Name]bool
	synced   time.Time // when all had come; zero: not yet
	eligible bool
	changes  map[source.Kind]uint64 // that have passed
}

func newTally(next source.Sink, node string) *tally {
	return &tally{next: next, node: node, known: make(map[source.Kind]map[model.Name]bool), changes: make(map[source.Kind]uint64)}
}

// Apply implements source.Sink.
func (t *tally) Apply(changes []source.Change, problems []model.Problem) {
	t.note(changes)
	t.next.Apply(changes, problems)
}

// Synced implements source.Sink.
func (t *tally) Synced() {
	t.mu.Lock()
	t.synced = time.Now()
	t.mu.Unlock()
	t.next.Synced()
}

func (t *tally) note(changes []source.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range changes {
		t.changes[c.Kind]++
		if t.known[c.Kind] == nil {
			t.known[c.Kind] = make(map[model.Name]bool)
		}
		if c.Object == nil {
			delete(t.known[c.Kind], c.Name)
		} else {
			t.known[c.Kind][c.Name] = true
		}
		if c.Kind == source.Node && c.Name.Name == t.node {
			t.eligible = eligible(c.Object)
		}
	}
}

// eligible reports whether load balancers may send traffic to the node (KEP-3836).
// Other taints, unschedulable among them, do not matter.
func eligible(object any) bool {
	n, ok := object.(*corev1.Node)
	if !ok || n == nil || n.DeletionTimestamp != nil {
		return false
	}
	for _, taint := range n.Spec.Taints {
		if taint.Key == health.ToBeDeletedTaint {
			return false
		}
	}
	return true
}

// count is what the tally says now.
type count struct {
	objects  map[string]int // by kind
	synced   time.Time      // zero: not yet
	eligible bool
	changes  map[source.Kind]uint64
}

func (t *tally) read() count {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := count{objects: make(map[string]int), synced: t.synced, eligible: t.eligible, changes: maps.Clone(t.changes)}
	for _, kind := range []source.Kind{source.Service, source.EndpointSlice, source.Node} {
		c.objects[string(kind)] = 0
	}
	for kind, names := range maps.All(t.known) {
		c.objects[string(kind)] = len(names)
	}
	return c
}
