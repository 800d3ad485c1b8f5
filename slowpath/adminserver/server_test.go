package adminserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

func TestServices(t *testing.T) {
	got, err := ask(t, newPlayed(t)).Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	web1 := api.Endpoint{Address: "10.244.1.5", Port: 8080, Node: "n1", Pod: "default/web-1", Ready: true, Serving: true, Local: true}
	web2 := api.Endpoint{Address: "10.244.2.6", Port: 8080, Node: "n2", Pod: "default/web-2", Ready: true, Serving: true}
	web3 := api.Endpoint{Address: "10.244.2.7", Port: 8080, Node: "n2", Pod: "default/web-3", Serving: true, Terminating: true}
	all := api.Choice{Tier: "all", Endpoints: []api.Endpoint{web1, web2}, Excluded: []api.Exclusion{{Endpoint: web3, Reason: "terminating"}}}
	none := api.Choice{Endpoints: []api.Endpoint{}}
	want := api.List[api.Service]{Items: []api.Service{
		{
			Namespace: "default", Name: "web", InternalPolicy: "Cluster", ExternalPolicy: "Cluster", Ports: []api.ServicePort{{
				Name: "http", Protocol: "TCP", Port: 80,
				Frontends: []api.Frontend{{Kind: "ClusterIP", Address: "10.96.0.10", Port: 80, Served: true}, {Kind: "ClusterIP", Address: "fd00:10:96::10", Port: 80}},
				Families: []api.Family{
					{Family: "IPv4", Internal: all, External: all, Cluster: all},
					{Family: "IPv6", Internal: none, External: none, Cluster: none},
				},
			}},
		},
		{
			Namespace: "shop", Name: "empty", InternalPolicy: "Cluster", ExternalPolicy: "Local", HealthPort: 32002, Ports: []api.ServicePort{{
				Protocol: "UDP", Port: 53,
				Frontends: []api.Frontend{{Kind: "ClusterIP", Address: "10.96.0.20", Port: 53, Served: true}},
				Families:  []api.Family{{Family: "IPv4", Internal: none, External: none, Cluster: none}},
			}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}

func TestBackends(t *testing.T) {
	p := newPlayed(t)
	backend := netip.MustParseAddrPort("10.244.1.5:8080")
	for _, client := range []string{"10.244.1.8:40000", "10.244.1.8:40001"} {
		p.register(t, netip.MustParseAddrPort(client), backend, netip.MustParseAddrPort(client))
	}
	p.reset(t) // tombstones do not count
	for _, client := range []string{"10.244.1.8:40002", "10.244.1.8:40003"} {
		p.register(t, netip.MustParseAddrPort(client), backend, netip.MustParseAddrPort(client))
	}
	c := ask(t, p)
	got, err := c.Backends(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one := api.Backend{Namespace: "default", Service: "web", Port: "http", Protocol: "TCP", TargetPort: 8080, Ready: true, Serving: true, Used: true, Outside: &api.Use{Used: true}}
	web1, web2, web3 := one, one, one
	web1.Address, web1.Node, web1.Pod, web1.Local, web1.Flows = "10.244.1.5", "n1", "default/web-1", true, 2
	web2.Address, web2.Node, web2.Pod = "10.244.2.6", "n2", "default/web-2"
	web3.Address, web3.Node, web3.Pod = "10.244.2.7", "n2", "default/web-3"
	web3.Ready, web3.Terminating, web3.Used, web3.Why = false, true, false, "terminating"
	web3.Outside = &api.Use{Why: "terminating"}
	if diff := cmp.Diff([]api.Backend{web1, web2, web3}, got.Items); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
}

func TestBackendsAreListedWithoutAFlowTable(t *testing.T) {
	p := newPlayed(t)
	p.noFlows = errNoTable
	got, err := ask(t, p).Backends(t.Context())
	if err != nil || len(got.Items) != 3 {
		t.Errorf("%d backends and %v, want 3", len(got.Items), err)
	}
}

func TestFlows(t *testing.T) {
	p := newPlayed(t)
	client, backend := netip.MustParseAddrPort("192.0.2.9:40000"), netip.MustParseAddrPort("10.244.1.5:8080")
	p.register(t, client, backend, netip.MustParseAddrPort("172.30.0.11:50000"))
	c := ask(t, p)
	got, err := c.Flows(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := api.List[api.Flow]{Items: []api.Flow{{
		Protocol: "TCP", Client: "192.0.2.9:40000", Frontend: "10.96.0.10:80", Backend: "10.244.1.5:8080",
		Source: "172.30.0.11:50000", Service: "default/web", Pod: "default/web-1", State: "half-open", Mode: "go", Delivery: "direct",
	}}}
	for i := range got.Items {
		if got.Items[i].Idle < 0 || got.Items[i].Idle > 60 {
			t.Errorf("idle for %g s, want a moment", got.Items[i].Idle)
		}
		got.Items[i].Idle = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flows (-want +got):\n%s", diff)
	}

	p.register(t, netip.MustParseAddrPort("192.0.2.9:40001"), backend, netip.MustParseAddrPort("172.30.0.11:50001"))
	got, err = c.Flows(t.Context(), 1)
	if err != nil || len(got.Items) != 1 || !got.Truncated {
		t.Errorf("%d flows, truncated %v, %v: want 1 and a sign that there are more", len(got.Items), got.Truncated, err)
	}

	p.reset(t)
	p.register(t, netip.MustParseAddrPort("192.0.2.9:40002"), backend, netip.MustParseAddrPort("172.30.0.11:50002"))
	got, err = c.OpenFlows(t.Context(), 1)
	if err != nil || len(got.Items) != 1 || got.Items[0].State != "half-open" || got.Closed != 2 || got.Truncated {
		t.Errorf("open flows %+v, %v: want the one that is open and 2 closed ones left out", got, err)
	}
	if got, err = c.Flows(t.Context(), 0); err != nil || len(got.Items) != 3 || got.Closed != 0 {
		t.Errorf("%d flows, %d left out, %v: want all 3", len(got.Items), got.Closed, err)
	}
	if st, err := c.Status(t.Context()); err != nil || st.Fastpath.Open != 1 {
		t.Errorf("%d open flows in the status, %v: want 1", st.Fastpath.Open, err)
	}
	if lane, err := c.Lane(t.Context()); err != nil || lane.Flows != 3 || lane.Open != 1 {
		t.Errorf("lane: %d registered, %d open, %v: want 3 and 1", lane.Flows, lane.Open, err)
	}
}

func TestDropsPortsProblemsAndStatus(t *testing.T) {
	p := newPlayed(t)
	p.totals, p.kernel = counted()
	c := ask(t, p)

	drops, err := c.Drops(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{}
	for _, d := range drops.Items {
		shown = append(shown, fmt.Sprintf("%s %s %s %d %d", d.Reason, d.Class, d.Where, d.Packets, d.Bytes))
		if d.Help == "" {
			t.Errorf("%s has no help", d.Reason)
		}
	}
	if diff := cmp.Diff([]string{"spoofed-source drop kernel 6 400", "no-endpoints answer go 3 180", "fragment drop go 2 3000"}, shown); diff != "" {
		t.Errorf("drops (-want +got):\n%s", diff)
	}

	ports, err := c.Ports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api.Port{ID: 2, Kind: "uplink", Device: "eth0", Index: 2, MTU: 1500, Delivery: "direct", HostMAC: "02:00:00:00:00:02", Routes: []string{"0.0.0.0/0"}}, ports.Items[1]); diff != "" {
		t.Errorf("uplink (-want +got):\n%s", diff)
	}

	problems, err := c.Problems(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Problem{{Kind: "Service", Object: "default/broken", Field: "spec.ports[0]", Reason: "BadPort", Message: "say another", Place: api.Place{File: "web.yaml", Document: 2, Line: 9, Item: "items[3]"}}}
	if diff := cmp.Diff(want, problems.Items); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}

	if status, err := c.Status(t.Context()); err != nil || status.Mode != "lace" || status.Node != "n1" {
		t.Errorf("status %+v, %v", status, err)
	}
}

func TestBeforeTheFirstPublicationListsAreEmpty(t *testing.T) {
	c := ask(t, &played{noFlows: errNoTable})
	if l, err := c.Services(t.Context()); err != nil || l.Items == nil || len(l.Items) != 0 {
		t.Errorf("services %v, %v", l, err)
	}
	if l, err := c.Backends(t.Context()); err != nil || len(l.Items) != 0 {
		t.Errorf("backends %v, %v", l, err)
	}
	if l, err := c.Ports(t.Context()); err != nil || len(l.Items) != 0 {
		t.Errorf("ports %v, %v", l, err)
	}
	if l, err := c.Problems(t.Context()); err != nil || len(l.Items) != 0 {
		t.Errorf("problems %v, %v", l, err)
	}
	if l, err := c.Drops(t.Context()); err != nil || len(l.Items) != 0 {
		t.Errorf("drops %v, %v", l, err)
	}
	if _, err := c.Flows(t.Context(), 0); err == nil || !strings.Contains(err.Error(), errNoTable.Error()) {
		t.Errorf("flows without a table: %v, want %v", err, errNoTable)
	}
	if _, err := c.Explain(t.Context(), "host", "10.96.0.10:80/tcp"); err == nil || !strings.Contains(err.Error(), "the source") {
		t.Errorf("explain: %v, want what is waited for", err)
	}
}

func TestBadQuestionsAreRefusedWithAReason(t *testing.T) {
	_, path := serve(t, newPlayed(t))
	h := overSocket(path)
	cases := []struct {
		method, target string
		status         int
	}{
		{"GET", "/v1/flows?limit=0", 400},
		{"GET", "/v1/flows?limit=many", 400},
		{"GET", "/v1/flows?limit=100001", 400},
		{"GET", "/v1/explain", 400},
		{"GET", "/v1/explain?from=host&to=10.96.0.10:80", 400},
		{"GET", "/v1/explain?from=nobody&to=10.96.0.10:80/tcp", 404},
		{"GET", "/v2/status", 404},
		{"POST", "/v1/status", 404},
		{"DELETE", "/v1/flows", 404},
	}
	for _, c := range cases {
		r, err := http.NewRequest(c.method, "http://lace"+c.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := h.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(b), `{"error":"`) {
			t.Errorf("%s %s: %d %s, want %d and an error", c.method, c.target, resp.StatusCode, b, c.status)
		}
	}
}

func overSocket(path string) *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
}

func TestSocketIsPrivateAndTakesTheOldOnesPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	if err := os.WriteFile(path, []byte("left behind"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Socket: path, Node: newPlayed(t)})
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 || st.Mode().Type() != fs.ModeSocket {
		t.Errorf("mode %v, want a socket with 0600", st.Mode())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want no socket", err)
	}
}

func TestASocketThatCannotBeMadeIsNamed(t *testing.T) {
	for name, path := range map[string]string{
		"a directory that is missing": filepath.Join(t.TempDir(), "absent", "agent.sock"),
		"a path that is too long":     filepath.Join(t.TempDir(), strings.Repeat("x", 120)),
	} {
		if _, err := New(Config{Socket: path, Node: newPlayed(t)}); err == nil || !strings.Contains(err.Error(), "admin socket") {
			t.Errorf("%s: %v, want an error about the admin socket", name, err)
		}
	}
}

func TestGarbageAndIdleClientsKeepNobodyOut(t *testing.T) {
	_, path := serve(t, newPlayed(t))
	for i := range 2 * maxConnections {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			_, _ = io.WriteString(c, "\x00\xff what is this")
		}
	}
	c := api.NewClient(path)
	defer c.Close()
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("behind %d idle clients: %v", 2*maxConnections, err)
	}
}

func TestSlowReadersHoldNoWalk(t *testing.T) {
	p := newPlayed(t)
	p.register(t, netip.MustParseAddrPort("10.244.1.8:40000"), netip.MustParseAddrPort("10.244.1.5:8080"), netip.MustParseAddrPort("10.244.1.8:40000"))
	_, path := serve(t, p)
	for range 2 * maxWalks { // each asks and never reads
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /v1/flows HTTP/1.1\r\nHost: lace\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	c := api.NewClient(path)
	defer c.Close()
	if _, err := c.Flows(t.Context(), 0); err != nil {
		t.Errorf("behind slow readers: %v", err)
	}
}

func TestAQuestionWithoutEndIsCutOff(t *testing.T) {
	_, path := serve(t, newPlayed(t))
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, "GET /v1/explain?from="+strings.Repeat("a", 2*maxHeader+8192)+" HTTP/1.1\r\nHost: lace\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return // closed at once is as good
	}
	defer r.Body.Close()
	if r.StatusCode < 400 {
		t.Errorf("%d, want a refusal", r.StatusCode)
	}
}

func TestClientSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	absent := api.NewClient(filepath.Join(dir, "agent.sock"))
	if _, err := absent.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("no socket: %v, want a hint at --state-dir", err)
	} else if strings.Contains(err.Error(), "http") {
		t.Errorf("the message speaks of HTTP: %v", err)
	}

	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as kill -9 leaves it
	l.Close()
	if _, err := api.NewClient(dead).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "start lace-agent") {
		t.Errorf("a socket without a process: %v, want a hint at starting it", err)
	}
}

// TestAnEndlessNameIsRefusedInPlainWords: the words of HTTP are not the user's.
func TestAnEndlessNameIsRefusedInPlainWords(t *testing.T) {
	_, err := ask(t, newPlayed(t)).Explain(t.Context(), strings.Repeat("a", 100<<10), "10.96.0.10:80/tcp")
	var refused *api.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the question is too long") {
		t.Errorf("%v, want that it is too long", err)
	}
}

func TestOnlyRootAndTheAgentsUserMayAsk(t *testing.T) {
	for uid, want := range map[int]bool{0: true, os.Geteuid(): true, 65534: os.Geteuid() == 65534} {
		if got := mayAsk(uid); got != want {
			t.Errorf("user %d may ask: %v, want %v", uid, got, want)
		}
	}
	dir := t.TempDir()
	l, err := listen(filepath.Join(dir, "a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", filepath.Join(dir, "a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if uid, err := uidOf(accepted); err != nil || uid != os.Geteuid() {
		t.Errorf("the kernel says user %d (%v), want %d", uid, err, os.Geteuid())
	}
}
