package kube

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"lace-cni.io/lace/control/model"
)

// How many Events a node writes: so many at once, and then one each time.
const (
	burst    = 25
	interval = 10 * time.Second
	waiting  = 1000 // Problems that wait to be told; more are not told
	noteSize = 1024 // bytes of a note, as the API has it
)

// Teller writes Problems of Services as Events beside them, so that whoever looks at the
// Service with kubectl finds out. Make one with NewTeller.
//
// An Event is written once when a Problem appears, and its name follows from the Problem:
// when all nodes have the same one, the cluster has one Event of it. Nothing is written
// while nothing changes. What cannot be written is given up: Events are a courtesy. The
// recorder of client-go names Events by time and counts repetitions in them, which would be
// an Event of each node, writes at rest and a right to change them.
type Teller struct {
	node string
	log  *slog.Logger
	uid  func(model.Name) types.UID
	post func(context.Context, *eventsv1.Event) error
	now  func() time.Time

	mu      sync.Mutex
	known   map[model.Problem]bool
	pending []model.Problem
	wake    chan struct{} // of one
}

// NewTeller returns one that speaks to the API servers of k.
func NewTeller(k *Kube) *Teller {
	t := newTeller(k.config.Node, k.config.Log)
	t.uid = func(n model.Name) types.UID {
		uid, _ := k.uids.Load(n)
		out, _ := uid.(types.UID)
		return out
	}
	t.post = func(ctx context.Context, e *eventsv1.Event) error {
		return k.client.events.Post().Namespace(e.Namespace).Resource("events").Body(e).Do(ctx).Error()
	}
	return t
}

func newTeller(node string, log *slog.Logger) *Teller {
	return &Teller{node: node, log: log, now: time.Now, known: make(map[model.Problem]bool), wake: make(chan struct{}, 1)}
}

// Tell takes all Problems that there are now. It does not wait.
func (t *Teller) Tell(problems []model.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := make(map[model.Problem]bool)
	for _, p := range problems {
		if p.Kind != "Service" || now[p] {
			continue
		}
		now[p] = true
		if !t.known[p] && len(t.pending) < waiting {
			t.pending = append(t.pending, p)
		}
	}
	t.known = now
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends; then it returns nil.
func (t *Teller) Run(ctx context.Context) error {
	tokens := burst
	refill := time.NewTicker(interval)
	defer refill.Stop()
	for {
		for tokens > 0 {
			p, ok := t.next()
			if !ok {
				break
			}
			if t.write(ctx, p) {
				tokens--
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-refill.C:
			tokens = min(tokens+1, burst)
		case <-t.wake:
		}
	}
}

// next is the oldest Problem that still holds.
func (t *Teller) next() (model.Problem, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.pending) > 0 {
		p := t.pending[0]
		t.pending = t.pending[1:]
		if t.known[p] {
			return p, true
		}
	}
	return model.Problem{}, false
}

// write says whether the API was asked.
func (t *Teller) write(ctx context.Context, p model.Problem) bool {
	name, ok := nameIn(p.Object)
	if !ok {
		return false
	}
	uid := t.uid(name)
	if uid == "" { // gone meanwhile
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := t.post(ctx, t.event(p, name, uid)); err != nil && !apierrors.IsAlreadyExists(err) {
		t.log.Debug("an Event was not written", "service", name, "reason", p.Reason, "error", err)
	}
	return true
}

func nameIn(object string) (n model.Name, ok bool) {
	for i := range object {
		if object[i] == '/' {
			return model.Name{Namespace: object[:i], Name: object[i+1:]}, true
		}
	}
	return model.Name{}, false
}

// event is a Problem as an Event beside its Service.
func (t *Teller) event(p model.Problem, n model.Name, uid types.UID) *eventsv1.Event {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s", uid, p.Field, p.Reason, p.Message)
	note := p.Message
	if p.Field != "" {
		note = p.Field + ": " + note
	}
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: n.Namespace, Name: fmt.Sprintf("%s.%x", cut(n.Name, 200), h.Sum64())},
		EventTime:           metav1.NewMicroTime(t.now()),
		ReportingController: "lace-cni.io/agent",
		ReportingInstance:   t.node,
		Action:              "Program",
		Reason:              p.Reason,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: n.Namespace, Name: n.Name, UID: uid},
		Note:                cut(note, noteSize),
		Type:                corev1.EventTypeWarning,
	}
}

// cut shortens a text to so many bytes, and not within a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = "…"
	end := most - len(more)
	for end > 0 && s[end]&0xc0 == 0x80 {
		end--
	}
	return s[:end] + more
}
