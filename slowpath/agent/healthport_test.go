package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/source/dir"
)

// balanced is a Service that balancers ask about at a port, with one endpoint on this node.
const balanced = `
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: web}
spec:
  type: LoadBalancer
  allocateLoadBalancerNodePorts: false
  externalTrafficPolicy: Local
  healthCheckNodePort: PORT
  clusterIPs: [10.96.0.10]
  ports: [{port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints:
- {addresses: [10.244.1.5], nodeName: n1, conditions: {CONDITIONS}}
`

// folder is a source in which one file is replaced as a whole.
type folder struct {
	t    *testing.T
	path string
	port int
}

func newFolder(t *testing.T, c *Config) *folder {
	t.Helper()
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{t: t, path: t.TempDir()}
	f.port, _ = strconv.Atoi(port)
	source := dir.New(f.path)
	source.Log, source.Poll = c.Log, 20*time.Millisecond
	c.Source, c.SourceName = source, "dir:"+f.path
	return f
}

// declare replaces the endpoint's conditions.
func (f *folder) declare(conditions string) {
	f.t.Helper()
	text := strings.NewReplacer("PORT", fmt.Sprint(f.port), "CONDITIONS", conditions).Replace(balanced)
	temporary := filepath.Join(f.t.TempDir(), "new")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(f.path, "all.yaml")); err != nil {
		f.t.Fatal(err)
	}
}

// asked is what the Service's health check port says: code and weight; or that it is
// refused.
func (f *folder) asked() string {
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/", f.port))
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return fmt.Sprintf("%d %s", r.StatusCode, r.Header.Get("X-Load-Balancing-Endpoint-Weight"))
}

func (f *folder) says(want string) {
	f.t.Helper()
	eventually(f.t, "the health check port says "+want, func() error {
		if got := f.asked(); !strings.Contains(got, want) {
			return errors.New(got)
		}
		return nil
	})
}

// TestHealthPortSpeaksAboutTheTablesInUse: published is not enough, and a change that the
// tables do not show is told all the same.
func TestHealthPortSpeaksAboutTheTablesInUse(t *testing.T) {
	c := config(t, io.Discard)
	f := newFolder(t, &c)
	f.declare("ready: true")
	client := start(t, c)
	f.says("503 0") // no fast path uses anything
	counters, err := counter.Create(c.path("counters"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer counters.Close()
	counters.Worker(0).Publish(monotonic() + time.Hour.Nanoseconds()) // alive for the whole test
	use := func() {
		t.Helper()
		eventually(t, "all is published", func() error {
			s, err := client.Status(t.Context())
			if err != nil || !s.Generation.QueuedSince.IsZero() {
				return fmt.Errorf("%+v, %v", s.Generation, err)
			}
			counters.Set(counter.Generation, s.Generation.Published)
			return nil
		})
	}
	use()
	f.says("200 1")

	f.declare("ready: false")
	eventually(t, "the change is published", func() error {
		s, err := client.Status(t.Context())
		if err != nil || s.Generation.Published == s.Generation.InUse {
			return fmt.Errorf("%+v, %v", s.Generation, err)
		}
		return nil
	})
	if got := f.asked(); got != "200 1" {
		t.Errorf("published and not in use: %s, want 200 1 still", got)
	}
	use()
	f.says("503 0")

	f.declare("ready: true")
	eventually(t, "the endpoint is back", func() error { use(); return differs(f.asked(), "200 1") })
	f.declare("ready: false, serving: true, terminating: true") // the only one left is used while it drains
	eventually(t, "the endpoint drains", func() error { use(); return differs(f.asked(), "503 0") })
}

func differs(got, want string) error {
	if got != want {
		return fmt.Errorf("%s, want %s", got, want)
	}
	return nil
}

// TestHealthPortThatIsTaken is a Problem of the Service for whoever looks.
func TestHealthPortThatIsTaken(t *testing.T) {
	c := config(t, io.Discard)
	f := newFolder(t, &c)
	l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", f.port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f.declare("ready: true")
	client := start(t, c)
	eventually(t, "a Problem", func() error {
		problems, err := client.Problems(t.Context())
		for _, p := range problems.Items {
			if p.Object == "demo/web" && p.Reason == "FailedToStartServiceHealthcheck" {
				return nil
			}
		}
		return fmt.Errorf("%+v, %v", problems.Items, err)
	})
}

// TestHealthPortIsClosedWhileTheAgentIsAway, and answers again afterwards.
func TestHealthPortIsClosedWhileTheAgentIsAway(t *testing.T) {
	c := config(t, io.Discard)
	f := newFolder(t, &c)
	f.declare("ready: true")
	for range 2 {
		t.Run("an agent runs", func(t *testing.T) {
			start(t, c)
			f.says("503 0")
		})
		f.says("refused")
	}
}
