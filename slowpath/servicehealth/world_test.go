package servicehealth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lace-cni.io/lace/control/model"
)

func TestMain(m *testing.M) {
	// net/http leaves a connection that it has refused half open for half a second.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// world is a Set that runs, and a fast path that is played.
type world struct {
	*Set
	t      *testing.T
	inUse  atomic.Uint64
	ill    atomic.Bool
	change atomic.Int64 // times that Problems changed
}

func start(t *testing.T, edit func(*Config)) *world {
	t.Helper()
	w := &world{t: t}
	c := Config{
		Node: "n1", All: true, Retry: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Look:    func() Sight { return Sight{w.inUse.Load(), !w.ill.Load()} },
		Changed: func() { w.change.Add(1) },
	}
	if edit != nil {
		edit(&c)
	}
	w.Set = New(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	return w
}

// use announces a generation and lets the fast path use it.
func (w *world) use(generation uint64, services ...*model.Service) {
	w.Announce(generation, services, nil)
	w.inUse.Store(generation)
}

// endpoint is one of this node, ready.
func endpoint(addr string) model.Endpoint {
	return model.Endpoint{Addr: netip.MustParseAddr(addr), Port: 8080, Node: "n1", Ready: true, Serving: true}
}

// service is demo/web with a health check port and endpoints in the families given.
func service(port uint16, families map[int][]model.Endpoint) *model.Service {
	s := &model.Service{Name: model.Name{Namespace: "demo", Name: "web"}, HealthPort: port, Ports: []model.ServicePort{{Families: map[int]model.FamilyChoice{}}}}
	for f, endpoints := range families {
		s.Ports[0].Families[f] = model.FamilyChoice{Endpoints: endpoints}
	}
	return s
}

// free is a port on which nobody listens in either family.
func free(t *testing.T) uint16 {
	t.Helper()
	for range 100 {
		l4, err := net.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		n := l4.Addr().(*net.TCPAddr).Port
		l6, err := net.Listen("tcp6", fmt.Sprintf("[::]:%d", n))
		l4.Close()
		if err == nil {
			l6.Close()
			return uint16(n)
		}
	}
	t.Fatal("no port is free in both families")
	return 0
}

func at(host string, port uint16) string {
	return netip.AddrPortFrom(netip.MustParseAddr(host), port).String()
}

type reply struct {
	code   int
	header http.Header
	body   string
}

func ask(addr string) (reply, error) {
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + addr + "/any/path?at=all")
	if err != nil {
		return reply{}, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return reply{r.StatusCode, r.Header, string(b)}, err
}

func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s: %v", what, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// answers waits until the address answers with the code and weight.
func answers(t *testing.T, addr string, code int, endpoints string) {
	t.Helper()
	eventually(t, addr, func() error {
		r, err := ask(addr)
		if err != nil || r.code != code || r.header.Get(weight) != endpoints {
			return fmt.Errorf("%d, weight %q, %v; want %d and %s", r.code, r.header.Get(weight), err, code, endpoints)
		}
		return nil
	})
}

// refuses waits until nobody listens at the address.
func refuses(t *testing.T, addr string) {
	t.Helper()
	eventually(t, addr, func() error {
		if r, err := ask(addr); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("%+v, %v; want it refused", r, err)
		}
		return nil
	})
}
