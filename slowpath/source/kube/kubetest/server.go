package kubetest

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

// Server is one API server in front of a store.
type Server struct {
	*Store
	rand  *rand.Rand
	mu    sync.Mutex
	mood  Mood
	moved chan struct{} // closed when the mood changes
	wrote int           // requests that were no reads
	lists int
}

// NewServer serves a store. What it leaves to chance follows from the seeds.
func NewServer(s *Store, seed, stream uint64) *Server {
	return &Server{Store: s, rand: rand.New(rand.NewPCG(seed, stream)), moved: make(chan struct{})}
}

// Writes is how many requests came that were no reads, and refused.
func (a *Server) Writes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrote
}

// Lists is how many lists were asked for that were not streamed.
func (a *Server) Lists() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists
}

// Mood is how an API server misbehaves.
type Mood struct {
	Failing   bool // answers 500 to everything
	Plain     bool // does not stream lists, as an old one
	Replaying bool // repeats and reorders events
	Lag       int  // so many versions behind
	Ending    bool // ends watches after a few events

	Slow   time.Duration // what it waits before a list, and before each object of one that it streams
	Silent bool          // does not begin a list
}

// Set changes the mood, of requests under way too.
func (a *Server) Set(m Mood) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mood = m
	close(a.moved)
	a.moved = make(chan struct{})
}

func (a *Server) now() Mood {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mood
}

// dawdle waits as long as the mood says; false: the client has gone.
func (a *Server) dawdle(r *http.Request) bool {
	for {
		a.mu.Lock()
		m, moved := a.mood, a.moved
		a.mu.Unlock()
		var over <-chan time.Time
		switch {
		case m.Silent:
		case m.Slow > 0:
			over = time.After(m.Slow)
		default:
			return r.Context().Err() == nil
		}
		select {
		case <-over:
			return true
		case <-moved:
		case <-r.Context().Done():
			return false
		}
	}
}

func (a *Server) throw(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rand.IntN(n)
}

func (a *Server) chance(n int) bool { return a.throw(n) == 0 }

// ServeHTTP lists and watches.
func (a *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		a.mu.Lock()
		a.wrote++
		a.mu.Unlock()
		fail(w, apierrors.NewMethodNotSupported(schema.GroupResource{}, r.Method))
		return
	}
	if a.now().Failing {
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
		a.list(w, r, &q)
	case q.initial && a.now().Plain:
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

// at returns all that is selected now, and the version.
func (a *Server) at(q *query) (all []any, version int) {
	a.Store.mu.Lock()
	defer a.Store.mu.Unlock()
	for key, o := range a.objects {
		if q.selects(key, o) {
			all = append(all, q.shown(o, Version(o)))
		}
	}
	return all, a.version
}
