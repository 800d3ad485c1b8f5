package health

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serve runs a server until the test ends.
func serve(t *testing.T, s *Server, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s.Addr().String()
}

func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func well() State { return State{Eligible: true} }

func TestProbeServer(t *testing.T) {
	s, err := NewProbes("127.0.0.1:0", well, nil, nil)
	addr := serve(t, s, err)
	for path, want := range map[string]int{"/healthz": 200, "/livez": 200, "/": 404, "/metrics": 404} {
		code, body := get(t, addr, path)
		if code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
		if want == 200 && !strings.Contains(body, "lastUpdated") {
			t.Errorf("%s: body %q, want one with lastUpdated", path, body)
		}
	}
}

func TestMetricsServer(t *testing.T) {
	pinged := 0
	s, err := NewMetrics("127.0.0.1:0", Pages{
		Metrics: word("lace_build_info 1\n"), SLIs: word("kubernetes_healthcheck 1\n"), Pinged: func() { pinged++ }, Configuration: map[string]int{"a": 1},
	}, nil)
	addr := serve(t, s, err)
	for path, want := range map[string]string{
		"/metrics": "lace_build_info 1\n", "/metrics/slis": "kubernetes_healthcheck 1\n", "/healthz": "ok", "/proxyMode": "lace", "/configz": "{\n  \"a\": 1\n}\n",
	} {
		if code, body := get(t, addr, path); code != 200 || body != want {
			t.Errorf("%s: %d %q, want 200 %q", path, code, body, want)
		}
	}
	if pinged != 1 {
		t.Errorf("told of %d answers of /healthz, want 1", pinged)
	}
}

// TestProbesAnswerEveryMethod: balancers ask by GET, HEAD or OPTIONS, and kube-proxy does not
// mind which.
func TestProbesAnswerEveryMethod(t *testing.T) {
	s, err := NewProbes("127.0.0.1:0", well, nil, nil)
	addr := serve(t, s, err)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
		for _, path := range []string{"/healthz", "/livez"} {
			q, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("%s %s: %d, want 200", method, path, r.StatusCode)
			}
		}
	}
}

func TestIdleClientsAndGarbageKeepNobodyOut(t *testing.T) {
	s, err := NewProbes("127.0.0.1:0", well, nil, nil)
	addr := serve(t, s, err)
	for i := range 2 * maxConnections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			_, _ = io.WriteString(c, "\x16\x03\x01 what is this")
		}
	}
	if code, _ := get(t, addr, "/livez"); code != 200 {
		t.Errorf("behind %d idle clients: %d, want 200", 2*maxConnections, code)
	}
}

func TestAHeaderWithoutEndIsCutOff(t *testing.T) {
	s, err := NewProbes("127.0.0.1:0", well, nil, nil)
	addr := serve(t, s, err)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	// net/http allows a little more than MaxHeaderBytes; twice is beyond.
	_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("a", 2*maxHeader+8192)+"\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return // closed at once is as good
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d, want 431", r.StatusCode)
	}
}

func TestATakenAddressIsSaidWithWhatToDo(t *testing.T) {
	s, err := NewProbes("127.0.0.1:0", well, nil, nil)
	addr := serve(t, s, err)
	_, err = NewProbes(addr, well, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "kube-proxy") || !strings.Contains(err.Error(), addr) {
		t.Errorf("got %v, want an error with %s and what to look for", err, addr)
	}
}
