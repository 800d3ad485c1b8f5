package publish

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/source"
)

// maxTriggers bounds what is remembered while nothing can be published.
const maxTriggers = 1 << 16

// latency remembers when the world changed, for changes that are not published yet.
type latency struct {
	started  time.Time
	first    bool // the first publication was made
	triggers []time.Time
	told     []Trigger // of them those that the cluster has told
}

// note remembers a change before it is put to the objects.
func (l *latency) note(c source.Change, before *resolve.Objects) {
	if !l.first {
		return // what was there already when the agent began has waited for nobody
	}
	at := c.Trigger
	if s, ok := c.Object.(*discoveryv1.EndpointSlice); ok {
		if t := l.annotated(s, before.Slices[c.Name]); !t.IsZero() {
			at = t
			if len(l.told) < maxTriggers {
				l.told = append(l.told, Trigger{string(s.AddressType), t})
			}
		}
	}
	if !at.IsZero() && len(l.triggers) < maxTriggers {
		l.triggers = append(l.triggers, at)
	}
}

// annotated is the time at which the cluster says the endpoints changed, if this slice
// says so anew. A note from before the agent's start is about something else: it stays
// in an object for as long as nothing happens, and in a file for ever.
func (l *latency) annotated(now, before *discoveryv1.EndpointSlice) time.Time {
	text := now.Annotations[corev1.EndpointsLastChangeTriggerTime]
	if text == "" || before != nil && before.Annotations[corev1.EndpointsLastChangeTriggerTime] == text {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Before(l.started) {
		return time.Time{}
	}
	return t
}

// observe tells how long each change waited, and returns those whose moment the cluster has
// told. Clocks of two machines may disagree; less than nothing is nothing.
func (l *latency) observe(published time.Time, tell func(time.Duration)) (told []Trigger) {
	for _, t := range l.triggers {
		tell(max(0, published.Sub(t)))
	}
	told = l.told
	l.told = nil // it is the caller's now
	l.forget()
	l.first = true
	return told
}

// forget drops changes that need no publication.
func (l *latency) forget() { l.triggers, l.told = l.triggers[:0], l.told[:0] }
