package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"lace-cni.io/lace/slowpath/listener"
)

// Bounds of both servers. Probes are small and short; whoever needs more is not one.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 10 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeader      = 8 << 10
	maxConnections = 256
	shutdownTime   = 2 * time.Second
)

// Server is one HTTP server of the agent, listening already.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Answered is told of every answer of a probe: the path, the code, and what it follows from.
type Answered func(path string, code int, checks []Check)

// NewProbes listens for /healthz and /livez at the address, usually 0.0.0.0:10256. Every
// method is answered, as kube-proxy does it: balancers ask by OPTIONS, too. state is called for
// every request, and then answered, which may be nil; both from any goroutine.
func NewProbes(addr string, state func() State, answered Answered, log *slog.Logger) (*Server, error) {
	mux := http.NewServeMux()
	for path, rule := range map[string]rule{"/healthz": healthz, "/livez": livez} {
		mux.Handle(path, probe(state, time.Now, rule, answered.of(path)))
	}
	return listen("health probes", addr, mux, log)
}

// of is told of the answers of one path.
func (a Answered) of(path string) func(code int, checks []Check) {
	if a == nil {
		return func(int, []Check) {}
	}
	return func(code int, checks []Check) { a(path, code, checks) }
}

// Pages are what the metrics server shows.
type Pages struct {
	Metrics       http.Handler
	SLIs          http.Handler // how checks of health have come out
	Pinged        func()       // told of every answer of /healthz, from any goroutine; nil: nobody is
	Configuration any          // shown as JSON
	Profiling     bool         // serve /debug/pprof to clients of this machine
}

// NewMetrics listens for /metrics, /metrics/slis, /healthz, /proxyMode, /configz and, if
// asked to, /debug/pprof at the address, usually 127.0.0.1:10249. What kube-proxy answers
// whatever the method is answered so.
func NewMetrics(addr string, p Pages, log *slog.Logger) (*Server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.Metrics)
	mux.Handle("GET /metrics/slis", p.SLIs)
	mux.Handle("/healthz", told(p.Pinged, word("ok")))
	mux.Handle("/proxyMode", word("lace"))
	mux.Handle("GET /configz", page(p.Configuration))
	if p.Profiling {
		profiles(mux)
	}
	return listen("metrics", addr, mux, log)
}

// told serves a page and tells of it.
func told(of func(), h http.HandlerFunc) http.HandlerFunc {
	if of == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) { of(); h(w, r) }
}

// page serves a value as JSON, for people and programs alike.
func page(v any) http.HandlerFunc {
	b, err := json.MarshalIndent(v, "", "  ")
	return func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(append(b[:len(b):len(b)], '\n')) // a client that went away needs no answer
	}
}

func word(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, s)
	}
}

func listen(what, addr string, h http.Handler, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s at %s: %w (is kube-proxy or another lace-agent running on this node? stop it, or choose another address)", what, addr, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s at %q: %w (choose another address)", what, addr, err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		listener: listener.Bound(l, maxConnections),
		http: &http.Server{
			Handler:           h,
			ReadTimeout:       readTimeout,
			ReadHeaderTimeout: readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(log.With("server", what).Handler(), slog.LevelDebug),
		},
	}, nil
}

// Addr is where the server listens, with the port that the kernel chose for port 0.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, lets requests under way finish for a moment, and returns nil.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if err := s.http.Shutdown(grace); err != nil {
			_ = s.http.Close()
		}
	})
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("server at %s: %w", s.Addr(), err)
	}
	return nil
}

// Close stops listening, for a server that is not going to run.
func (s *Server) Close() error { return s.listener.Close() }
