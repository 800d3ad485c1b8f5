package kube

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// slices joins the watches that together see every EndpointSlice: that of those which
// are served, with contents, and those of the labelled, by name. A slice that changes
// sides leaves one watch and enters another at about the same time in any order, and one
// watch may be behind the others by as much as it likes: what is older than anything
// heard of a slice, its end included, does not count. Used by one goroutine.
type slices struct {
	live  map[model.Name]*halves
	ended map[model.Name]string // highest version that was heard of those that no watch sees, lately
}

func newSlices() slices {
	return slices{live: make(map[model.Name]*halves), ended: make(map[model.Name]string)}
}

// halves is what the watches say of one slice.
type halves struct {
	versions [watches]string // empty: that watch does not see it
	objects  [watches]*discoveryv1.EndpointSlice
	shown    *discoveryv1.EndpointSlice // delivered last
	latest   string                     // highest version that was heard of
}

// join takes what watch w says and returns what there is to deliver; ok is false when
// that is nothing.
func (s slices) join(w int, n news) (c source.Change, ok bool) {
	h := s.live[n.name]
	if h == nil {
		h = &halves{latest: s.ended[n.name]}
		s.live[n.name] = h
		delete(s.ended, n.name)
	}
	if h.latest == "" || newer(n.version, h.latest) {
		h.latest = n.version
	}
	h.versions[w], h.objects[w] = "", nil
	if n.object != nil {
		h.versions[w], h.objects[w] = n.version, asSlice(n.object)
	}
	if h.versions == [watches]string{} {
		s.end(n.name, h.latest)
	}
	return h.show(n.name)
}

// end remembers how far a slice had come that no watch sees: one that is behind may be about
// to say that it is there.
func (s slices) end(n model.Name, latest string) {
	delete(s.live, n)
	if len(s.ended) >= lately {
		clear(s.ended)
	}
	s.ended[n] = latest
}

// show returns what there is to deliver, if it is not what was delivered last.
func (h *halves) show(n model.Name) (c source.Change, ok bool) {
	now := h.current()
	if now == h.shown {
		return source.Change{}, false
	}
	h.shown = now
	c = source.Change{Kind: source.EndpointSlice, Name: n}
	if now != nil {
		c.Object = now
	}
	return c, true
}

// current is the slice as the watch that is ahead sees it; nil: it is gone.
func (h *halves) current() *discoveryv1.EndpointSlice {
	for w, v := range h.versions {
		if v != "" && !newer(h.latest, v) {
			return h.objects[w]
		}
	}
	return nil
}

// rewind forgets how far versions had come, after the cluster went back to an older
// state and counts from there, and returns what there is to deliver then.
func (s slices) rewind() (out []source.Change) {
	clear(s.ended)
	for n, h := range s.live {
		h.latest = "0"
		for _, v := range h.versions {
			if v != "" && newer(v, h.latest) {
				h.latest = v
			}
		}
		if c, ok := h.show(n); ok {
			out = append(out, c)
		}
	}
	return out
}

// asSlice makes a slice without contents of one that is known by its labels only.
func asSlice(o metav1.Object) *discoveryv1.EndpointSlice {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		return &discoveryv1.EndpointSlice{ObjectMeta: m.ObjectMeta}
	}
	return o.(*discoveryv1.EndpointSlice)
}
