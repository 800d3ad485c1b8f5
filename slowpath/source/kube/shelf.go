package kube

import (
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"lace-cni.io/lace/control/model"
)

// shelf takes what a reflector finds for one watch and passes on what is new. It knows
// the version of each object and not the object. Its methods are called by one
// goroutine, that of the reflector.
type shelf struct {
	known map[model.Name]string // resource versions
	ended map[model.Name]string // those at which objects ended, lately
	last  string                // version of the last list or event; empty: nothing was read yet
	put   func(news []news, list list)
	stale *atomic.Uint64 // events that came too late
}

// list says whether news are all there is.
type list int

const (
	part   list = iota // there may be more
	whole              // a list: there is nothing else
	rewind             // a list that is older than what was known
)

// lately bounds what is remembered of objects that are gone.
const lately = 1 << 12

// news is an object as it is now.
type news struct {
	name    model.Name
	object  metav1.Object // nil: gone
	version string        // of the object, or of its end, or the last one before it
}

func newShelf(stale *atomic.Uint64, put func([]news, list)) *shelf {
	return &shelf{known: make(map[model.Name]string), ended: make(map[model.Name]string), put: put, stale: stale}
}

var _ cache.TransformingStore = (*shelf)(nil)

// Transformer implements cache.TransformingStore.
func (s *shelf) Transformer() cache.TransformFunc { return trim }

// Resync implements cache.ReflectorStore. Nothing has to be said twice.
func (s *shelf) Resync() error { return nil }

// Add implements cache.ReflectorStore.
func (s *shelf) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore. An object that is older than what is known is
// dropped: a server that lags, or says something twice, does not turn time back.
func (s *shelf) Update(object any) error {
	o, err := trimmed(object)
	if err != nil {
		return err
	}
	n := nameOf(o)
	if !s.later(n, o.GetResourceVersion()) {
		s.stale.Add(1)
		return nil
	}
	delete(s.ended, n)
	s.known[n] = o.GetResourceVersion()
	s.advance(o)
	s.put([]news{{n, o, o.GetResourceVersion()}}, part)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *shelf) Delete(object any) error {
	o, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("deletion of a %T, which is no object", object)
	}
	n := nameOf(o)
	was, there := s.known[n]
	if !there || newer(was, o.GetResourceVersion()) {
		s.stale.Add(1)
		return nil
	}
	delete(s.known, n)
	if len(s.ended) >= lately {
		clear(s.ended)
	}
	s.ended[n] = o.GetResourceVersion()
	s.advance(o)
	s.put([]news{{name: n, version: o.GetResourceVersion()}}, part)
	return nil
}

func (s *shelf) advance(o metav1.Object) {
	if s.last == "" || newer(o.GetResourceVersion(), s.last) {
		s.last = o.GetResourceVersion()
	}
}

// later says whether a version comes after all that was heard of the object, its end
// included.
func (s *shelf) later(n model.Name, version string) bool {
	if was, there := s.known[n]; there && !newer(version, was) {
		return false
	}
	end, gone := s.ended[n]
	return !gone || newer(version, end)
}

// Replace implements cache.ReflectorStore: these objects are all there are. A whole list
// is believed even when it is older than what is known, as it is after a cluster was
// brought back from a backup.
func (s *shelf) Replace(objects []any, version string) error {
	var out []news
	now := make(map[model.Name]string, len(objects))
	for _, object := range objects {
		o, err := trimmed(object)
		if err != nil {
			return err
		}
		n := nameOf(o)
		if now[n] = o.GetResourceVersion(); s.known[n] != now[n] {
			out = append(out, news{n, o, now[n]})
		}
	}
	for n, was := range s.known {
		if _, there := now[n]; !there {
			out = append(out, news{name: n, version: was}) // it ended at some time after that
		}
	}
	kind := whole
	if s.last != "" && newer(s.last, version) {
		kind = rewind
	}
	s.known, s.last = now, version
	clear(s.ended)
	s.put(out, kind)
	return nil
}

func trimmed(object any) (metav1.Object, error) {
	t, err := trim(object)
	if err != nil {
		return nil, err
	}
	return t.(metav1.Object), nil // as everything is that trim returns
}

func nameOf(o metav1.Object) model.Name {
	return model.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// newer says whether version a came after b. Versions that are no numbers, which no
// server of today has, are all new.
func newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}
