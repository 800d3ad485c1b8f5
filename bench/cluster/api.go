package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// API speaks to the API server as a user, in JSON.
type API struct {
	server string
	client *http.Client
}

// newAPI makes a client that dials from the network namespace of a process.
func newAPI(server string, as *tls.Config, pid int) *API {
	t := &http.Transport{TLSClientConfig: as, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialIn(ctx, pid, network, addr)
	}}
	return &API{server, &http.Client{Transport: t}}
}

// Error is an answer that is no success.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Do sends an object, which may be nil, and reads one into what into points at, which
// may be nil.
func (a *API) Do(ctx context.Context, method, path string, object, into any) error {
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	return a.send(ctx, method, path, kind, object, into)
}

// send sends an object, in JSON, as content of a kind.
func (a *API) send(ctx context.Context, method, path, kind string, object, into any) error {
	var body io.Reader
	if object != nil {
		b, err := json.Marshal(object)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.server+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	answer, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		var s struct{ Message string }
		if json.Unmarshal(b, &s) != nil || s.Message == "" {
			s.Message = string(b)
		}
		return fmt.Errorf("%s %s: %w", method, path, &Error{answer.StatusCode, s.Message})
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

// Create, Put, Patch, Get and Delete are the verbs of the API.
func (a *API) Create(ctx context.Context, path string, object, into any) error {
	return a.Do(ctx, http.MethodPost, path, object, into)
}

// Put replaces an object.
func (a *API) Put(ctx context.Context, path string, object, into any) error {
	return a.Do(ctx, http.MethodPut, path, object, into)
}

// Patch merges fields into an object.
func (a *API) Patch(ctx context.Context, path string, fields, into any) error {
	return a.Do(ctx, http.MethodPatch, path, fields, into)
}

// Get reads an object or a list.
func (a *API) Get(ctx context.Context, path string, into any) error {
	return a.Do(ctx, http.MethodGet, path, nil, into)
}

// Delete removes an object.
func (a *API) Delete(ctx context.Context, path string) error {
	return a.Do(ctx, http.MethodDelete, path, nil, nil)
}

// Close gives up connections.
func (a *API) Close() { a.client.CloseIdleConnections() }
