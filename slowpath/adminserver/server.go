package adminserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// Bounds of the server.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeader      = 16 << 10
	maxConnections = 64
	maxWalks       = 2 // walks through the flow table at one moment
	shutdownTime   = 2 * time.Second
)

// Config of a Server.
type Config struct {
	Socket string // path, usually <state-dir>/agent.sock; the caller holds agent.lock
	Node   Node
	Log    *slog.Logger

	// Repaired is told each time that the socket was taken away and was made again; nil:
	// nobody is.
	Repaired func()
}

// Server answers on the admin socket.
type Server struct {
	node     Node
	log      *slog.Logger
	listener net.Listener
	socket   socket
	http     *http.Server
	walks    chan struct{} // a token for each walk under way
	load     load
}

// New listens on the socket, which it makes with mode 0600 in the place of one that an
// earlier agent left. Its directory should be closed to others (0700).
func New(c Config) (*Server, error) {
	l, err := listen(c.Socket)
	if err != nil {
		return nil, err
	}
	s := &Server{node: c.Node, log: c.Log, walks: make(chan struct{}, maxWalks)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.socket = socket{path: c.Socket, repaired: c.Repaired}
	if c.Repaired == nil {
		s.socket.repaired = func() {}
	}
	s.socket.use(l)
	s.listener = s.bound(l)
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadTimeout:       readTimeout,
		ReadHeaderTimeout: readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.With("server", "admin socket").Handler(), slog.LevelDebug),
	}
	return s, nil
}

func listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("admin socket %s: what is there cannot be removed: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w (a path may have 107 bytes)", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	return l, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	answer(mux, api.PathStatus, s.status)
	answer(mux, api.PathServices, s.services)
	answer(mux, api.PathBackends, s.backends)
	answer(mux, api.PathFlows, s.flows)
	answer(mux, api.PathDrops, s.drops)
	answer(mux, api.PathLane, s.lane)
	answer(mux, api.PathPorts, s.ports)
	answer(mux, api.PathProblems, s.problems)
	answer(mux, api.PathExplain, s.explain)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &api.RefusedError{Status: http.StatusNotFound, Message: fmt.Sprintf("no such question: %s %q; this agent may be older than the command", r.Method, r.URL.Path)})
	})
	return mux
}

// Run serves until ctx ends, lets answers under way finish for a moment, removes the
// socket and returns nil.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if err := s.http.Shutdown(grace); err != nil {
			_ = s.http.Close()
		}
	})
	defer stop()
	watch, end := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); s.keep(watch) }()
	defer func() { end(); <-kept }()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin socket: %w", err)
	}
	return nil
}

// Close stops listening, for a server that is not going to run.
func (s *Server) Close() error { return s.listener.Close() }
