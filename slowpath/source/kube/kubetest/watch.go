package kubetest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (a *Server) list(w http.ResponseWriter, r *http.Request, q *query) {
	a.mu.Lock()
	a.lists++
	a.mu.Unlock()
	if !a.dawdle(r) {
		return
	}
	all, version := a.at(q)
	if q.version > version-a.now().Lag {
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
func (a *Server) watch(w http.ResponseWriter, r *http.Request, q *query) {
	s := &sender{Server: a, w: w, query: q, out: json.NewEncoder(w)}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	after := q.version
	if q.initial {
		if !a.dawdle(r) { // before it looks: what is written meanwhile is in the list
			return
		}
		all, version := a.at(q)
		for _, o := range all {
			if !a.dawdle(r) {
				return
			}
			s.send("ADDED", o)
			w.(http.Flusher).Flush()
		}
		s.bookmark(version, true)
		after = version
	}
	for sent := 0; ; {
		a.Store.mu.Lock()
		change, gone := a.Store.change, after < a.first
		var fresh []event
		for _, e := range a.log {
			if e.version > after && e.version <= a.version-a.now().Lag {
				fresh = append(fresh, e)
			}
		}
		a.Store.mu.Unlock()
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
		if a.now().Ending && sent > 2 {
			return
		}
		select {
		case <-change:
		case <-time.After(time.Second): // for a change of Mood
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
	*Server
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
	if s.now().Replaying && len(s.past) > 0 && s.chance(2) {
		if before := s.past[s.throw(len(s.past))]; s.chance(2) {
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
