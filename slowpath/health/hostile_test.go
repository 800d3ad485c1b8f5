package health

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestALongQuestionIsRefused: a request line of two megabytes is answered 431, or the
// connection closed, at each of the servers.
func TestALongQuestionIsRefused(t *testing.T) {
	for what, addr := range servers(t) {
		t.Run(what, func(t *testing.T) {
			c := dial(t, addr)
			go func() {
				_, _ = io.WriteString(c, "GET /"+strings.Repeat("a", 2<<20)+" HTTP/1.1\r\nHost: x\r\n\r\n")
			}()
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return // closed while it was still talking
			}
			defer r.Body.Close()
			if r.StatusCode != http.StatusRequestHeaderFieldsTooLarge && r.StatusCode != http.StatusRequestURITooLong {
				t.Errorf("%d, want 431 or 414", r.StatusCode)
			}
		})
	}
}

// TestSlowReadersHoldNothing: clients that ask for a long answer and never read it hold
// neither memory nor goroutines beyond the bound, and keep nobody out.
func TestSlowReadersHoldNothing(t *testing.T) {
	for what, addr := range servers(t) {
		t.Run(what, func(t *testing.T) {
			before := runtime.NumGoroutine()
			for range 2 * maxConnections {
				c := dial(t, addr)
				_ = c.(*net.TCPConn).SetReadBuffer(4096)
				_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
			}
			c := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			r, err := c.Get("http://" + addr + "/healthz")
			if err != nil {
				t.Fatalf("behind %d slow readers: %v", 2*maxConnections, err)
			}
			r.Body.Close()
			// A connection has at most two goroutines: the one that serves, and one that watches it.
			deadline := time.Now().Add(20 * time.Second)
			for runtime.NumGoroutine()-before > 2*maxConnections+16 {
				if time.Now().After(deadline) {
					t.Fatalf("%d goroutines more than before", runtime.NumGoroutine()-before)
				}
				runtime.Gosched()
			}
		})
	}
}

// TestHalfQuestionsAreCutOff: who sends a byte now and then is cut off in the end.
func TestHalfQuestionsAreCutOff(t *testing.T) {
	for what, addr := range servers(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := dial(t, addr)
			_ = c.SetReadDeadline(time.Now().Add(6 * readTimeout))
			gone := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, c)
				gone <- err
			}()
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for _, b := range []byte("GET /healthz HTTP/1.1\r\nX: " + strings.Repeat("a", 1000)) {
				select {
				case err := <-gone:
					if e, slow := err.(net.Error); slow && e.Timeout() {
						t.Fatal("still connected")
					}
					return
				case <-tick.C:
					_, _ = c.Write([]byte{b})
				}
			}
			t.Fatal("has listened to all of it")
		})
	}
}

// servers are both servers of the package; the metrics are long.
func servers(t *testing.T) map[string]string {
	t.Helper()
	probes, err := NewProbes("127.0.0.1:0", well, nil, slog.New(slog.DiscardHandler))
	long := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("lace_long_answer 1\n", 100))
		for range 1000 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	all := map[string]string{"probes": serve(t, probes, err)}
	metrics, err := NewMetrics("127.0.0.1:0", Pages{Metrics: long, SLIs: long}, nil)
	all["metrics"] = serve(t, metrics, err)
	return all
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}
