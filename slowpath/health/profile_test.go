package health

import (
	"net"
	"strings"
	"testing"
)

// TestProfiles are served where they were asked for, and else not.
func TestProfiles(t *testing.T) {
	for _, on := range []bool{false, true} {
		s, err := NewMetrics("127.0.0.1:0", Pages{Metrics: word(""), SLIs: word(""), Profiling: on}, nil)
		addr := serve(t, s, err)
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=0.01"} {
			want := 404
			if on {
				want = 200
			}
			if code, body := get(t, addr, path); code != want || on && body == "" {
				t.Errorf("profiling %v, %s: %d %.40q, want %d", on, path, code, body, want)
			}
		}
	}
}

// TestProfilesStayOnTheMachine: at another address of it they are refused, and metrics are not.
func TestProfilesStayOnTheMachine(t *testing.T) {
	s, err := NewMetrics("0.0.0.0:0", Pages{Metrics: word("m"), SLIs: word(""), Profiling: true}, nil)
	_, port, _ := net.SplitHostPort(serve(t, s, err))
	if code, _ := get(t, net.JoinHostPort("127.0.0.1", port), "/debug/pprof/cmdline"); code != 200 {
		t.Errorf("at the loopback address: %d, want 200", code)
	}
	other := ownAddress(t)
	if code, body := get(t, net.JoinHostPort(other, port), "/debug/pprof/cmdline"); code != 403 || !strings.Contains(body, "loopback") {
		t.Errorf("at %s: %d %q, want 403 with the reason", other, code, body)
	}
	if code, _ := get(t, net.JoinHostPort(other, port), "/metrics"); code != 200 {
		t.Errorf("metrics at %s: %d, want 200", other, code)
	}
}

// ownAddress is one of this machine that others could reach.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has loopback addresses only")
	return ""
}

func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"192.0.2.1:1": false, "[fe80::1]:1": false, "0.0.0.0:1": false, "localhost:1": false, "127.0.0.1": false, "": false,
	} {
		if isLoopback(addr) != want {
			t.Errorf("%q: %v, want %v", addr, !want, want)
		}
	}
}
