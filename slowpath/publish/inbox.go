package publish

import (
	"sync"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// inbox is what came in and is not worked on yet. The last change of an object replaces
// the ones before, so that it never holds more than there are objects.
type inbox struct {
	mu   sync.Mutex
	mail mail
	// since is when the oldest change came that is not published, zero when all are.
	since time.Time
	last  time.Time     // when the newest came, published or not
	wake  chan struct{} // of one
}

// mail is the content of an inbox.
type mail struct {
	changes        map[objectKey]source.Change
	sourceProblems []model.Problem
	told           bool // the source said something about Problems
	synced         bool
	attached       *attached
}

type attached struct {
	attachments model.Attachments
	problems    []model.Problem
}

type objectKey struct {
	kind source.Kind
	name model.Name
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// post changes the content and wakes the worker.
func (b *inbox) post(edit func(*mail)) {
	b.mu.Lock()
	edit(&b.mail)
	b.last = time.Now()
	if b.since.IsZero() {
		b.since = b.last
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox.
func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.mail
	b.mail = mail{}
	return m
}

// done notes that all that was taken is published, unless more has come meanwhile.
func (b *inbox) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := &b.mail; len(m.changes) == 0 && !m.told && !m.synced && m.attached == nil {
		b.since = time.Time{}
	} else {
		b.since = time.Now()
	}
}

func (b *inbox) queued() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since
}

func (b *inbox) latest() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *inbox) pending(k source.Kind) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.mail.changes {
		if key.kind == k {
			n++
		}
	}
	return n
}

// add takes a change. Of several changes of one object the last object counts, and the
// first moment: that is how long the world has been waiting.
func (m *mail) add(c source.Change) {
	if m.changes == nil {
		m.changes = map[objectKey]source.Change{}
	}
	k := objectKey{c.Kind, c.Name}
	if before, ok := m.changes[k]; ok && !before.Trigger.IsZero() {
		c.Trigger = before.Trigger
	}
	m.changes[k] = c
}
