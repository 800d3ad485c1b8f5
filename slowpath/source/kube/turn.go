package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// turn sends each request to one of several API servers: to the one that worked last,
// and when that cannot be reached to the next, once around. A server that answers that
// it cannot serve is left with the answer, and the next request goes to its neighbour.
// Safe for concurrent use.
type turn struct {
	servers []*url.URL
	next    http.RoundTripper
	current atomic.Int64 // index; grows without end
	failed  atomic.Pointer[failure]
}

// failure is the last time around that reached nobody.
type failure struct {
	at  time.Time
	err error
}

// breather is how long nobody is tried after all were in vain.
const breather = 300 * time.Millisecond

// RoundTrip implements http.RoundTripper.
func (t *turn) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := t.failed.Load(); f != nil && time.Since(f.at) < breather {
		return nil, f.err
	}
	var failed []error
	for range t.servers {
		at := t.current.Load()
		attempt, err := t.aim(r, at, len(failed) > 0)
		if err != nil {
			return nil, errors.Join(append(failed, err)...)
		}
		answer, err := t.next.RoundTrip(attempt)
		if err == nil {
			if answer.StatusCode >= http.StatusInternalServerError {
				t.leave(at)
			}
			answer.Body = &body{answer.Body, r.Context(), func() { t.leave(at) }}
			return answer, nil
		}
		failed = append(failed, err)
		if r.Context().Err() != nil {
			return nil, err
		}
		t.leave(at)
	}
	err := failed[0]
	if len(failed) > 1 {
		err = errors.Join(failed...)
	}
	t.failed.Store(&failure{time.Now(), err})
	return nil, err
}

// aim copies the request for one server. A body is read anew for a second attempt.
func (t *turn) aim(r *http.Request, at int64, again bool) (*http.Request, error) {
	out := r.Clone(r.Context())
	s := t.servers[int(at%int64(len(t.servers)))]
	out.URL.Scheme, out.URL.Host, out.Host = s.Scheme, s.Host, ""
	if !again || r.Body == nil {
		return out, nil
	}
	if r.GetBody == nil {
		return nil, errors.New("the request cannot be repeated")
	}
	var err error
	out.Body, err = r.GetBody()
	return out, err
}

// leave goes on to the next server, unless another request has done so already.
func (t *turn) leave(at int64) { t.current.CompareAndSwap(at, at+1) }

// body is an answer that says when its connection breaks.
type body struct {
	io.ReadCloser
	ctx   context.Context
	broke func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() == nil {
		b.broke()
	}
	return n, err
}
