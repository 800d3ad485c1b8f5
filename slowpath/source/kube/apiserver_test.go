package kube

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store is what a cluster holds, and how it came to be: etcd, as several API servers
// see it.
type store struct {
	mu      sync.Mutex
	version int
	objects map[string]metav1.Object // by resource/namespace/name
	log     []event
	first   int // oldest version that a watch can begin after
	change  chan struct{}
}

// event is one write.
type event struct {
	version  int
	key      string
	now, was metav1.Object // nil: not there
}

func newStore() *store {
	return &store{version: 100, first: 100, objects: make(map[string]metav1.Object), change: make(chan struct{})}
}

func keyOf(resource string, o metav1.Object) string {
	return resource + "/" + o.GetNamespace() + "/" + o.GetName()
}

// write puts an object, or removes it when it is nil.
func (s *store) write(key string, o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.objects[key]
	if o == nil && was == nil {
		return
	}
	s.version++
	if o == nil {
		delete(s.objects, key)
	} else {
		o = o.(runtime.Object).DeepCopyObject().(metav1.Object)
		o.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[key] = o
	}
	s.log = append(s.log, event{s.version, key, o, was})
	close(s.change)
	s.change = make(chan struct{})
}

// compact forgets the past, as etcd does every five minutes.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.log = s.version, nil
}

// api is one API server in front of a store.
type api struct {
	*store
	rand  *rand.Rand
	mu    sync.Mutex
	mood  mood
	wrote int // requests that were no reads
	lists int
}

// mood is how an API server misbehaves.
type mood struct {
	failing   bool // answers 500 to everything
	plain     bool // does not stream lists, as an old one
	replaying bool // repeats and reorders events
	lag       int  // so many versions behind
	ending    bool // ends watches after a few events
}

func (a *api) set(m mood) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mood = m
}

func (a *api) now() mood {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mood
}

func (a *api) chance(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rand.IntN(n) == 0
}

// ServeHTTP lists and watches.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		a.mu.Lock()
		a.wrote++
		a.mu.Unlock()
		fail(w, apierrors.NewMethodNotSupported(schema.GroupResource{}, r.Method))
		return
	}
	if a.now().failing {
		fail(w, apierrors.NewInternalError(fmt.Errorf("etcdserver: no leader")))
		return
	}
	q := query{resource: r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], names: strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")}
	var err error
	if q.labels, err = labels.Parse(r.FormValue("labelSelector")); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	q.fields = r.FormValue("fieldSelector")
	q.version, _ = strconv.Atoi(r.FormValue("resourceVersion"))
	q.initial = r.FormValue("sendInitialEvents") == "true"
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.FormValue("watch") == "":
		a.list(w, &q)
	case q.initial && a.now().plain:
		fail(w, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil))
	default:
		a.watch(w, r, &q)
	}
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
	_ = json.NewEncoder(w).Encode(&err.ErrStatus)
}

// query is what a request asks for.
type query struct {
	resource string
	labels   labels.Selector
	fields   string
	names    bool // metadata only
	version  int
	initial  bool
}

// selects says whether an object is in the answer.
func (q *query) selects(key string, o metav1.Object) bool {
	if o == nil || !strings.HasPrefix(key, q.resource+"/") || !q.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	switch {
	case q.fields == "spec.clusterIP!=None":
		return o.(*corev1.Service).Spec.ClusterIP != "None"
	case strings.HasPrefix(q.fields, "metadata.name="):
		return o.GetName() == strings.TrimPrefix(q.fields, "metadata.name=")
	}
	return true
}

var kindOf = map[string]metav1.TypeMeta{
	"services":       {APIVersion: "v1", Kind: "Service"},
	"nodes":          {APIVersion: "v1", Kind: "Node"},
	"endpointslices": {APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
	"servicecidrs":   {APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDR"},
}

// shown is the object as it is sent, at a version.
func (q *query) shown(o metav1.Object, version int) any {
	if q.names {
		m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
		m.Name, m.Namespace, m.Labels, m.ResourceVersion = o.GetName(), o.GetNamespace(), o.GetLabels(), strconv.Itoa(version)
		return m
	}
	c := o.(runtime.Object).DeepCopyObject()
	c.(metav1.Object).SetResourceVersion(strconv.Itoa(version))
	k := kindOf[q.resource]
	c.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(k.APIVersion, k.Kind))
	return c
}

func versionOf(o metav1.Object) int {
	v, _ := strconv.Atoi(o.GetResourceVersion())
	return v
}

// at returns all that is selected now, and the version.
func (a *api) at(q *query) (all []any, version int) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	for key, o := range a.objects {
		if q.selects(key, o) {
			all = append(all, q.shown(o, versionOf(o)))
		}
	}
	return all, a.version
}

func (a *api) list(w http.ResponseWriter, q *query) {
	a.mu.Lock()
	a.lists++
	a.mu.Unlock()
	all, version := a.at(q)
	if q.version > version-a.now().lag {
		fail(w, tooLarge())
		return
	}
	k := kindOf[q.resource]
	if q.names {
		k = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	if all == nil {
		all = []any{}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": k.APIVersion, "kind": k.Kind + "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)}, "items": all,
	})
}

// tooLarge is the answer of a server that has not seen the version yet.
func tooLarge() *apierrors.StatusError {
	err := apierrors.NewTimeoutError("Too large resource version", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// watch sends events until the client goes, the server is told to end, or the past that
// was asked for is forgotten.
func (a *api) watch(w http.ResponseWriter, r *http.Request, q *query) {
	s := &sender{api: a, w: w, query: q, out: json.NewEncoder(w)}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	after := q.version
	if q.initial {
		all, version := a.at(q)
		for _, o := range all {
			s.send("ADDED", o)
		}
		s.bookmark(version, true)
		after = version
	}
	for sent := 0; ; {
		a.store.mu.Lock()
		change, gone := a.store.change, after < a.first
		var fresh []event
		for _, e := range a.log {
			if e.version > after && e.version <= a.version-a.now().lag {
				fresh = append(fresh, e)
			}
		}
		a.store.mu.Unlock()
		if gone {
			s.send("ERROR", expired())
			return
		}
		for _, e := range fresh {
			after = e.version
			if s.tell(e) {
				sent++
			}
		}
		w.(http.Flusher).Flush()
		if a.now().ending && sent > 2 {
			return
		}
		select {
		case <-change:
		case <-time.After(time.Second): // for a change of mood
			if len(fresh) == 0 && after > 0 {
				s.bookmark(after, false)
			}
		case <-r.Context().Done():
			return
		}
	}
}

func expired() *metav1.Status {
	s := apierrors.NewResourceExpired("too old resource version").ErrStatus
	s.Kind, s.APIVersion = "Status", "v1"
	return &s
}

// sender writes one watch.
type sender struct {
	*api
	w     http.ResponseWriter
	query *query
	out   *json.Encoder
	past  []func()
}

func (s *sender) send(kind string, object any) {
	_ = s.out.Encode(map[string]any{"type": kind, "object": object})
}

func (s *sender) bookmark(version int, end bool) {
	k := kindOf[s.query.resource]
	if s.query.names {
		k = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	meta := map[string]any{"resourceVersion": strconv.Itoa(version)}
	if end {
		meta["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	s.send("BOOKMARK", map[string]any{"apiVersion": k.APIVersion, "kind": k.Kind, "metadata": meta})
}

// tell sends what a write means to this watch; false: nothing.
func (s *sender) tell(e event) bool {
	is, was := s.query.selects(e.key, e.now), s.query.selects(e.key, e.was)
	var say func()
	switch {
	case is && was:
		say = func() { s.send("MODIFIED", s.query.shown(e.now, e.version)) }
	case is:
		say = func() { s.send("ADDED", s.query.shown(e.now, e.version)) }
	case was:
		say = func() { s.send("DELETED", s.query.shown(e.was, e.version)) }
	default:
		return false
	}
	if s.now().replaying && len(s.past) > 0 && s.chance(2) {
		if before := s.past[len(s.past)-1]; s.chance(2) {
			say()
			before()
		} else {
			before()
			say()
		}
	} else {
		say()
	}
	s.past = append(s.past, say)
	return true
}
