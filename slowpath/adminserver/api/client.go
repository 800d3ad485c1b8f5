package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// DefaultTimeout bounds a request whose context has no deadline.
const DefaultTimeout = 10 * time.Second

// maxAnswer bounds what the client reads: MaxFlows flows fit several times.
const maxAnswer = 256 << 20

// Client asks one agent. It is safe for concurrent use and costs one idle connection.
type Client struct {
	socket string
	http   *http.Client
	peer   peer
}

// NewClient returns a client of the agent whose admin socket is at the path. Nothing
// is dialled yet.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http = &http.Client{Transport: &http.Transport{DialContext: c.dial, DisableCompression: true}}
	return c
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err == nil {
		c.peer.met(conn)
	}
	return conn, err
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the state of the node.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, PathStatus, nil)
}

// Services asks for every Service, sorted by namespace and name.
func (c *Client) Services(ctx context.Context) (List[Service], error) {
	return get[List[Service]](ctx, c, PathServices, nil)
}

// Backends asks for every endpoint of every Service port, sorted by Service.
func (c *Client) Backends(ctx context.Context) (List[Backend], error) {
	return get[List[Backend]](ctx, c, PathBackends, nil)
}

// Flows asks for at most limit registered flows; 0 means DefaultFlows.
func (c *Client) Flows(ctx context.Context, limit int) (List[Flow], error) {
	return c.flows(ctx, limit, url.Values{})
}

// OpenFlows is Flows without those that are closed.
func (c *Client) OpenFlows(ctx context.Context, limit int) (List[Flow], error) {
	return c.flows(ctx, limit, url.Values{"open": {"true"}})
}

func (c *Client) flows(ctx context.Context, limit int, q url.Values) (List[Flow], error) {
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[List[Flow]](ctx, c, PathFlows, q)
}

// Drops asks for every reason that dropped or refused packets, with counts.
func (c *Client) Drops(ctx context.Context) (List[Drop], error) {
	return get[List[Drop]](ctx, c, PathDrops, nil)
}

// Lane asks what the kernel does without Go.
func (c *Client) Lane(ctx context.Context) (Lane, error) { return get[Lane](ctx, c, PathLane, nil) }

// Ports asks for the node's ports, by id.
func (c *Client) Ports(ctx context.Context) (List[Port], error) {
	return get[List[Port]](ctx, c, PathPorts, nil)
}

// Problems asks for everything that could not be honoured.
func (c *Client) Problems(ctx context.Context) (List[Problem], error) {
	return get[List[Problem]](ctx, c, PathProblems, nil)
}

// Explain asks what would become of a packet: from is a pod (namespace/name or an
// unambiguous name), an address or "host"; to is address:port/protocol.
func (c *Client) Explain(ctx context.Context, from, to string) (Explanation, error) {
	return get[Explanation](ctx, c, PathExplain, url.Values{"from": {from}, "to": {to}})
}

// get asks one thing. An agent that was silent just now, when the client's own patience ended,
// is not asked again at once.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	if _, bounded := ctx.Deadline(); bounded {
		return ask[T](ctx, c, path, query)
	}
	if err := c.peer.lately(); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	out, err = ask[T](ctx, c, path, query)
	var silent *SilentError
	if errors.As(err, &silent) {
		c.peer.remember(err)
	}
	return out, err
}

// ask asks one thing and waits for the answer while ctx lasts.
func ask[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	began := time.Now()
	ctx, done := c.peer.watch(ctx)
	defer done()
	defer func() {
		if err == nil {
			return
		}
		if silent := c.peer.silence(ctx, c.socket, time.Since(began)); silent != nil {
			err = silent
		}
	}()
	u := url.URL{Scheme: "http", Host: "lace", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return out, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return out, c.explain(err)
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, maxAnswer)
	if resp.StatusCode != http.StatusOK {
		return out, refusal(resp.StatusCode, body)
	}
	if err := json.NewDecoder(body).Decode(&out); err != nil {
		return out, fmt.Errorf("answer of the agent at %s to %s: %w", c.socket, path, err)
	}
	return out, nil
}

// explain turns the usual failures into what to do about them.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &AbsentError{fmt.Sprintf("no agent at %s: start lace-agent, or name the state directory of the one that runs (--state-dir)", c.socket)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &AbsentError{fmt.Sprintf("the agent at %s is gone: start lace-agent", c.socket)}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the agent at %s may only be asked by root or its own user", c.socket)
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without the made-up address that HTTP needs
	}
	return fmt.Errorf("asking the agent at %s: %w", c.socket, err)
}

// AbsentError says that nobody listens at the socket.
type AbsentError struct{ message string }

func (e *AbsentError) Error() string { return e.message }

// RefusedError is an answer that says no: a bad question or something missing.
type RefusedError struct {
	Status  int
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

func refusal(status int, body io.Reader) error {
	var e Error
	if status == http.StatusRequestHeaderFieldsTooLarge || status == http.StatusRequestURITooLong {
		return &RefusedError{Status: status, Message: "the question is too long: no name, device or address takes so many characters"}
	}
	if err := json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&e); err != nil || e.Message == "" {
		e.Message = "the agent answered " + http.StatusText(status)
	}
	return &RefusedError{Status: status, Message: e.Message}
}
