package publish_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

// TestWrittenTellsWhatTheClusterTold: the moments of changed endpoints, of those that say
// one anew, and of no other change.
func TestWrittenTellsWhatTheClusterTold(t *testing.T) {
	var mu sync.Mutex
	var all []publish.Publication
	p := run(t, publish.Config{
		Path:    filepath.Join(t.TempDir(), "snapshot"),
		Written: func(w publish.Publication) { mu.Lock(); defer mu.Unlock(); all = append(all, w) },
	})
	take := func() (out []publish.Publication) {
		mu.Lock()
		defer mu.Unlock()
		out, all = all, nil
		return out
	}
	p.Apply(pair(1, 1), nil)
	settled(t, p)
	take()
	at := time.Now().UTC()
	noted := func(c source.Change, at time.Time) source.Change {
		c.Object.(*discoveryv1.EndpointSlice).Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)}
		return c
	}
	for _, c := range []struct {
		name   string
		change source.Change
		want   []time.Time
	}{
		{"a slice that says when", noted(sliceOf(1, 2), at), []time.Time{at}},
		{"one that says the same as before", noted(sliceOf(1, 3), at), nil},
		{"one that says nothing", sliceOf(1, 4), nil},
		{"one that says something from before the agent began", noted(sliceOf(1, 5), at.Add(-time.Hour)), nil},
		{"one that says it anew", noted(sliceOf(1, 6), at.Add(time.Second)), []time.Time{at.Add(time.Second)}},
		{"one that is deleted", gone(sliceOf(1, 6)), nil},
	} {
		begin := time.Now()
		p.Apply([]source.Change{c.change}, nil)
		s := settled(t, p)
		got := take()
		if len(got) != 1 || got[0].Generation != s.Generation || got[0].Began.Before(begin) {
			t.Fatalf("%s: %+v, want one publication, of generation %d", c.name, got, s.Generation)
		}
		var told []time.Time
		for _, e := range got[0].Endpoints {
			if told = append(told, e.At); e.Family != "IPv4" {
				t.Errorf("%s: family %s", c.name, e.Family)
			}
		}
		if len(told) != len(c.want) || len(told) > 0 && !told[0].Equal(c.want[0]) {
			t.Errorf("%s: told %v, want %v", c.name, told, c.want)
		}
	}
	if p.LastQueued().Before(at) || p.Pending(source.EndpointSlice) != 0 {
		t.Errorf("the last change came at %v and %d wait, want it after %v and none", p.LastQueued(), p.Pending(source.EndpointSlice), at)
	}
}

// TestComingIsToldBeforeTheSnapshotIsThere, with the generation that it will have, and of
// changes that the tables do not show.
func TestComingIsToldBeforeTheSnapshotIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	written := func() uint64 {
		s, err := table.Open(path)
		if err != nil {
			return 0
		}
		defer s.Close()
		return s.Generation()
	}
	var mu sync.Mutex
	var last uint64
	calls := 0
	p := run(t, publish.Config{Path: path, Coming: func(s *publish.State) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if now := written(); s.Generation != now+1 && !(s.Generation == now && now == last) {
			t.Errorf("told of generation %d while the file has %d", s.Generation, now)
		}
		last = s.Generation
	}})
	told := func() (int, uint64) { mu.Lock(); defer mu.Unlock(); return calls, last }
	p.Apply(pair(1, 1), nil)
	settled(t, p)
	for i := range byte(20) {
		p.Apply([]source.Change{sliceOf(1, i+2)}, nil)
		if s := settled(t, p); s.Generation != written() {
			t.Fatalf("generation %d, the file has %d", s.Generation, written())
		}
	}
	before, generation := told()
	p.Apply([]source.Change{sliceOf(1, 21)}, nil) // as it is already
	settled(t, p)
	if after, same := told(); after == before || same != generation {
		t.Errorf("after a change that the tables do not show: told %d times, generation %d; before %d and %d", after, same, before, generation)
	}
}
