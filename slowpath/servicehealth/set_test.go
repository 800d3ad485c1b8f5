package servicehealth

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/model"
)

// TestAnswers holds code, headers and body to what kube-proxy gives.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		endpoints []model.Endpoint
		ill       bool
		code      int
		weight    string
		body      string
	}{
		{"endpoints here", []model.Endpoint{endpoint("10.244.1.5"), endpoint("10.244.1.6")}, false, 200, "2",
			"{\n\t\"service\": {\n\t\t\"namespace\": \"demo\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}"},
		{"none here", nil, false, 503, "0",
			"{\n\t\"service\": {\n\t\t\"namespace\": \"demo\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 0,\n\t\"serviceProxyHealthy\": true\n}"},
		{"endpoints here, and a Lace that does not work", []model.Endpoint{endpoint("10.244.1.5")}, true, 503, "1",
			"{\n\t\"service\": {\n\t\t\"namespace\": \"demo\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 1,\n\t\"serviceProxyHealthy\": false\n}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, port := start(t, nil), free(t)
			w.ill.Store(c.ill)
			w.use(1, service(port, map[int][]model.Endpoint{4: c.endpoints}))
			answers(t, at("127.0.0.1", port), c.code, c.weight)
			r, err := ask(at("127.0.0.1", port))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.body, r.body); d != "" {
				t.Errorf("body (-want +got):\n%s", d)
			}
			if r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", r.header)
			}
		})
	}
}

// TestFamiliesAnswerForThemselves: with sockets of their own, on the same port.
func TestFamiliesAnswerForThemselves(t *testing.T) {
	w, port := start(t, nil), free(t)
	v4, v6 := at("127.0.0.1", port), at("::1", port)
	here4, here6 := []model.Endpoint{endpoint("10.244.1.5")}, []model.Endpoint{endpoint("fd00:10:244:1::5"), endpoint("fd00:10:244:1::6")}

	w.use(1, service(port, map[int][]model.Endpoint{4: here4, 6: here6}))
	answers(t, v4, 200, "1")
	answers(t, v6, 200, "2")

	w.use(2, service(port, map[int][]model.Endpoint{4: here4, 6: nil}))
	answers(t, v6, 503, "0") // a family that has no endpoints here
	answers(t, v4, 200, "1")

	w.use(3, service(port, map[int][]model.Endpoint{4: here4}))
	refuses(t, v6) // a family that the Service does not have
	answers(t, v4, 200, "1")

	w.use(4, service(port, map[int][]model.Endpoint{6: here6}))
	refuses(t, v4)
	answers(t, v6, 200, "2")
}

// TestPortsComeAndGoWithTheirServices, on every address of the node; connections that are
// open end with the port.
func TestPortsComeAndGoWithTheirServices(t *testing.T) {
	w, port, other := start(t, nil), free(t), free(t)
	here := map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}}
	refuses(t, at("127.0.0.1", port))
	w.use(1, service(port, here))
	answers(t, at("127.0.0.1", port), 200, "1")
	answers(t, at("127.9.9.9", port), 200, "1") // another address of the node

	c, err := net.Dial("tcp", at("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}

	w.use(2, service(other, here)) // made anew, with another port
	answers(t, at("127.0.0.1", other), 200, "1")
	refuses(t, at("127.0.0.1", port))
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection to a port that went: %v, want it closed", err)
	}

	w.use(3, service(0, here)) // under policy Cluster
	refuses(t, at("127.0.0.1", other))
	w.use(4, service(other, here))
	answers(t, at("127.0.0.1", other), 200, "1")
	w.use(5) // deleted
	refuses(t, at("127.0.0.1", other))
}

// TestChosenAddressesAlone are listened on, and followed as they change.
func TestChosenAddressesAlone(t *testing.T) {
	w, port := start(t, func(c *Config) { c.All = false }), free(t)
	s := service(port, map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}, 6: nil})
	w.inUse.Store(1)
	w.Announce(1, []*model.Service{s}, []netip.Addr{netip.MustParseAddr("127.0.0.2")})
	answers(t, at("127.0.0.2", port), 200, "1")
	refuses(t, at("127.0.0.3", port))
	refuses(t, at("::1", port))
	w.Announce(1, []*model.Service{s}, []netip.Addr{netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("::1")})
	answers(t, at("127.0.0.3", port), 200, "1")
	answers(t, at("::1", port), 503, "0")
	refuses(t, at("127.0.0.2", port))
}

// TestAPortThatIsTaken is a Problem, costs nobody else anything, and is had as soon as it
// is free.
func TestAPortThatIsTaken(t *testing.T) {
	w, port, other := start(t, nil), free(t), free(t)
	l, err := net.Listen("tcp4", at("0.0.0.0", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here := map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}, 6: {endpoint("fd00::5")}}
	beside := service(other, here)
	beside.Name.Name = "beside"
	w.use(1, beside, service(port, here))
	answers(t, at("127.0.0.1", other), 200, "1")
	answers(t, at("::1", port), 200, "1")
	problems := w.Problems()
	if len(problems) != 1 {
		t.Fatalf("Problems %v, want one", problems)
	}
	p := problems[0]
	if p.Kind != "Service" || p.Object != "demo/web" || p.Reason != "FailedToStartServiceHealthcheck" || p.Field != "spec.healthCheckNodePort" ||
		!strings.Contains(p.Message, fmt.Sprintf("node n1 cannot be asked for endpoints over tcp4: port %d is taken", port)) {
		t.Errorf("the Problem is %+v", p)
	}
	told := w.change.Load()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	answers(t, at("127.0.0.1", port), 200, "1")
	eventually(t, "no Problem", func() error {
		if got := w.Problems(); len(got) > 0 || w.change.Load() != told+1 {
			return fmt.Errorf("%v, told %d times, before %d", got, w.change.Load(), told)
		}
		return nil
	})
}

// TestAPortOfTheAgentIsTold: there is no other process to look for.
func TestAPortOfTheAgentIsTold(t *testing.T) {
	port := free(t)
	w := start(t, func(c *Config) { c.Own = []uint16{port} })
	l, err := net.Listen("tcp", at("0.0.0.0", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.use(1, service(port, map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}}))
	eventually(t, "a Problem that names the agent", func() error {
		if got := w.Problems(); len(got) != 1 || !strings.Contains(got[0].Message, fmt.Sprintf("port %d is lace-agent's own (--healthz-bind-address", port)) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// TestTwoServicesWithOnePort: one has it, the other a Problem, and gets it afterwards.
func TestTwoServicesWithOnePort(t *testing.T) {
	w, port := start(t, nil), free(t)
	a, b := service(port, map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}}), service(port, map[int][]model.Endpoint{4: nil})
	a.Name.Name = "a"
	w.use(1, b, a)
	answers(t, at("127.0.0.1", port), 200, "1")
	eventually(t, "a Problem of the other", func() error {
		if got := w.Problems(); len(got) != 1 || got[0].Object != "demo/web" {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	w.use(2, b)
	answers(t, at("127.0.0.1", port), 503, "0")
}

// TestSlowClientsKeepNobodyOut: many that say nothing, or a half question, and never end.
func TestSlowClientsKeepNobodyOut(t *testing.T) {
	w, port := start(t, nil), free(t)
	w.use(1, service(port, map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}}))
	answers(t, at("127.0.0.1", port), 200, "1")
	for i := range 3 * maxConnections {
		c, err := net.Dial("tcp", at("127.0.0.1", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nX: ")
		}
	}
	answers(t, at("127.0.0.1", port), 200, "1")
}

// TestALongQuestionIsRefused: the port takes a header of so many bytes and no more.
func TestALongQuestionIsRefused(t *testing.T) {
	w, port := start(t, nil), free(t)
	w.use(1, service(port, map[int][]model.Endpoint{4: {endpoint("10.244.1.5")}}))
	answers(t, at("127.0.0.1", port), 200, "1")
	c, err := net.Dial("tcp", at("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.WriteString(c, "GET /"+strings.Repeat("a", 1<<20)+" HTTP/1.1\r\nHost: x\r\n\r\n") }()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return // closed while it was still talking
	}
	r.Body.Close()
	if r.StatusCode != http.StatusRequestHeaderFieldsTooLarge && r.StatusCode != http.StatusRequestURITooLong {
		t.Errorf("%d, want 431 or 414", r.StatusCode)
	}
}
