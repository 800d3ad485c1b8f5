package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/dir"
)

// journal is a log that tests read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// fakeNode is a node with an uplink.
func fakeNode(t *testing.T) *netdev.Fake {
	t.Helper()
	f := netdev.NewFake()
	if _, err := f.AddLink(netdev.Link{Name: "eth0", MTU: 1500, Up: true, Ethernet: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.AddAddress("eth0", "172.30.0.11/24"); err != nil {
		t.Fatal(err)
	}
	return f
}

func config(t *testing.T, log io.Writer) Config {
	t.Helper()
	return Config{
		StateDir: filepath.Join(t.TempDir(), "lace"), BPFFS: t.TempDir(), NodeName: "n1",
		Source: silence{}, SourceName: "silence", ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		HealthAddr: free(t), MetricsAddr: free(t), Stack: fakeNode(t),
		Version: "v1", Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// free is an address on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs an agent that ends with the test, which fails if it leaves anything behind.
func start(t *testing.T, c Config) *api.Client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- Run(ctx, c) }()
	client := api.NewClient(c.path("agent.sock"))
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return client
}

func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAgentWithoutAFastPathWaitsAndSaysSo(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("run", func(t *testing.T) {
		var log journal
		c := config(t, &log)
		client := start(t, c)
		eventually(t, "something is published", func() error {
			s, err := client.Status(t.Context())
			switch {
			case err != nil:
				return err
			case s.Ready || s.Generation.Published == 0 || !strings.Contains(s.Waiting, "lace-fastpath has not run here yet"):
				return fmt.Errorf("status %+v", s)
			case s.Source != "silence" || !s.Synced || s.Fastpath.Alive:
				return fmt.Errorf("status %+v", s)
			}
			return nil
		})
		eventually(t, "the uplink is a port", func() error {
			ports, err := client.Ports(t.Context())
			if err != nil || len(ports.Items) != 1 || ports.Items[0].Device != "eth0" {
				return fmt.Errorf("ports %v, %v", ports.Items, err)
			}
			return nil
		})
		if _, err := os.Stat(c.path("snapshot")); err != nil {
			t.Error(err)
		}
		for url, want := range map[string]string{
			"http://" + c.HealthAddr + "/livez":      `"healthy":true`,
			"http://" + c.HealthAddr + "/healthz":    `"nodeEligible":false`, // no Node object
			"http://" + c.MetricsAddr + "/metrics":   "lace_fastpath_up 0",
			"http://" + c.MetricsAddr + "/proxyMode": "lace",
		} {
			if got := fetch(t, url); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want something with %q", url, got, want)
			}
		}
		eventually(t, "it is logged", func() error {
			if !strings.Contains(log.String(), "has not run here yet") {
				return errors.New(log.String())
			}
			return nil
		})
	})
}

// TestAFolderThatIsNotThereYet: it is a Problem while it is missing, and read when it
// appears.
func TestAFolderThatIsNotThereYet(t *testing.T) {
	var log journal
	c := config(t, &log)
	path := filepath.Join(t.TempDir(), "manifests")
	folder := dir.New(path)
	folder.Log, folder.Poll = c.Log, 20*time.Millisecond
	c.Source, c.SourceName = folder, "dir:"+path
	client := start(t, c)
	unreadable := func() (bool, error) {
		problems, err := client.Problems(t.Context())
		return slices.ContainsFunc(problems.Items, func(p api.Problem) bool {
			return p.Kind == "File" && p.Object == path && p.Reason == "FolderUnreadable"
		}), err
	}
	eventually(t, "a Problem and the log say it", func() error {
		if there, err := unreadable(); !there || err != nil || !strings.Contains(log.String(), "the folder cannot be read") {
			return fmt.Errorf("a Problem: %v, %v; log: %s", there, err, &log)
		}
		return nil
	})
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "n1.yaml"), []byte("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is read", func() error {
		s, err := client.Status(t.Context())
		if there, e := unreadable(); there || e != nil || err != nil || s.Generation.Published == 0 {
			return fmt.Errorf("a Problem: %v, %v; status %+v, %v", there, e, s, err)
		}
		return nil
	})
}

// TestTheLaneReachesTheSnapshot: on unless it is switched off.
func TestTheLaneReachesTheSnapshot(t *testing.T) {
	for _, want := range []uint8{1, 0} {
		c := config(t, io.Discard)
		if want == 0 {
			c.Settings = table.DefaultSettings()
			c.Settings.Lane = 0
		}
		start(t, c)
		eventually(t, fmt.Sprintf("a snapshot with the lane %d", want), func() error {
			s, err := table.Open(c.path("snapshot"))
			if err != nil {
				return err
			}
			defer s.Close()
			if got := s.Settings().Lane; got != want {
				return fmt.Errorf("lane %d", got)
			}
			return nil
		})
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestASecondAgentIsRefused(t *testing.T) {
	c := config(t, io.Discard)
	client := start(t, c)
	eventually(t, "the first agent answers", func() error { _, err := client.Status(t.Context()); return err })
	if err := Run(t.Context(), c); !errors.Is(err, ErrInUse) {
		t.Errorf("the second agent: %v, want ErrInUse", err)
	}
	if _, err := client.Status(t.Context()); err != nil {
		t.Errorf("the first agent afterwards: %v", err)
	}
}

func TestAnAddressThatIsTakenEndsTheStartAndLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, which := range []string{"health", "metrics"} {
		c := config(t, io.Discard)
		if which == "health" {
			c.HealthAddr = l.Addr().String()
		} else {
			c.MetricsAddr = l.Addr().String()
		}
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("%s: %v, want an error that names the address", which, err)
		}
		if _, err := os.Stat(c.path("agent.sock")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the admin socket was left behind (%v)", which, err)
		}
	}
}

// broken is a source that cannot go on.
type broken struct{}

func (broken) Run(context.Context, source.Sink) error { return errors.New("the API server is no more") }

func TestAPartThatFailsEndsTheAgent(t *testing.T) {
	c := config(t, io.Discard)
	c.Source = broken{}
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "the API server is no more") {
		t.Errorf("got %v, want the source's error", err)
	}
}

func TestGenerationsAndPortsGoOnAfterARestart(t *testing.T) {
	c := config(t, io.Discard)
	ids := func() (generation uint64, id uint16) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- Run(ctx, c) }()
		client := api.NewClient(c.path("agent.sock"))
		defer client.Close()
		eventually(t, "the uplink is published", func() error {
			ports, err := client.Ports(t.Context())
			if err != nil || len(ports.Items) != 1 {
				return fmt.Errorf("ports %v, %v", ports.Items, err)
			}
			s, err := client.Status(t.Context())
			if err != nil {
				return err
			}
			generation, id = s.Generation.Published, ports.Items[0].ID
			return nil
		})
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return generation, id
	}
	g1, id1 := ids()
	g2, id2 := ids()
	if g2 <= g1 || id2 != id1 {
		t.Errorf("generation %d and port %d, after a restart %d and %d; want a later generation and the same port", g1, id1, g2, id2)
	}
}

func TestCleanup(t *testing.T) {
	node, private := netdevtest.New(t), netdevtest.New(t)
	node.Veth("eth0", netdevtest.New(t), "w0")
	node.Address("eth0", "172.30.0.11/24")
	node.Veth("lace0", private, "lace1")
	stack := node.Stack()
	c := config(t, io.Discard)
	c.Stack = stack
	cleanup := func() (removed []string, err error) {
		node.Do(func() { removed, err = Cleanup(c) })
		return removed, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Run(ctx, c) }()
	eventually(t, "the service range and the aliases of own addresses are routed, and a snapshot written", func() error {
		_, err := os.Stat(c.path("snapshot"))
		if n := routesOfLace(t, stack); n != 2 || err != nil {
			return fmt.Errorf("%d routes, %v", n, err)
		}
		return nil
	})
	if _, err := cleanup(); !errors.Is(err, ErrInUse) {
		t.Errorf("under a running agent: %v, want ErrInUse", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := routesOfLace(t, stack); n != 2 {
		t.Errorf("%d routes after the agent ended, want 2: the fast path goes on", n)
	}
	for i, want := range []string{
		"routes of service ranges: 10.96.0.0/16, 169.254.76.0/22; trunk: lace0, and its private network namespace; files in " +
			c.StateDir + ": snapshot, agent.lock; " + c.StateDir,
		"",
	} {
		removed, err := cleanup()
		if got := strings.Join(removed, "; "); err != nil || got != want {
			t.Errorf("time %d: removed %q, %v; want %q", i+1, got, err, want)
		}
	}
	left, _ := os.ReadDir(c.StateDir)
	links, err := stack.Links()
	if err != nil {
		t.Fatal(err)
	}
	trunk := slices.ContainsFunc(links, func(l netdev.Link) bool { return l.Name == "lace0" })
	if n := routesOfLace(t, stack); n != 0 || len(left) != 0 || trunk {
		t.Errorf("%d routes, files %v and a trunk (%v) are left, want none", n, left, trunk)
	}
}

// TestCleanupLeavesWhatIsNotItsOwn: a directory that holds something else stays.
func TestCleanupLeavesWhatIsNotItsOwn(t *testing.T) {
	node := netdevtest.New(t)
	c := config(t, io.Discard)
	c.Stack = node.Stack()
	foreign := c.path("notes.txt")
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{foreign, c.path("snapshot")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var removed []string
	var err error
	node.Do(func() { removed, err = Cleanup(c) })
	if want := []string{"files in " + c.StateDir + ": snapshot"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v; want %q", removed, err, want)
	}
	if left, _ := os.ReadDir(c.StateDir); len(left) != 1 {
		t.Errorf("%v is left, want notes.txt alone", left)
	}
}

func routesOfLace(t *testing.T, s netdev.Stack) (n int) {
	t.Helper()
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.Protocol == netdev.ProtocolLace {
			n++
		}
	}
	return n
}
