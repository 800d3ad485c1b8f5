package kubetest

import (
	"maps"
	"reflect"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Store is what a cluster holds, and how it came to be: etcd, as several API servers
// see it.
type Store struct {
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

// NewStore holds nothing yet.
func NewStore() *Store {
	return &Store{version: First, first: First, objects: make(map[string]metav1.Object), change: make(chan struct{})}
}

// First is the version of an empty Store; each write adds one.
const First = 100

// Key is where an object of a resource, "services" say, is kept.
func Key(resource string, o metav1.Object) string {
	return resource + "/" + o.GetNamespace() + "/" + o.GetName()
}

// Write puts an object, or removes it when it is nil. What would change nothing is no
// write, as with the real one.
func (s *Store) Write(key string, o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.objects[key]
	if o == nil && was == nil || o != nil && was != nil && same(o, was) {
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

// Compact forgets the past, as etcd does every five minutes.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.log = s.version, nil
}

// same compares all but the version.
func same(o, was metav1.Object) bool {
	c := o.(runtime.Object).DeepCopyObject().(metav1.Object)
	c.SetResourceVersion(was.GetResourceVersion())
	return reflect.DeepEqual(c, was)
}

// Latest is the version of the last write.
func (s *Store) Latest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Objects returns everything by Key. The objects must not be changed.
func (s *Store) Objects() map[string]metav1.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

// Get returns one object; nil: it is not there.
func (s *Store) Get(key string) metav1.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

// Version is that of an object; 0: it has none.
func Version(o metav1.Object) int {
	v, _ := strconv.Atoi(o.GetResourceVersion())
	return v
}
