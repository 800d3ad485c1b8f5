package adminserver

import (
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// onNodePort gives the Service web a node port, with its alias.
func onNodePort(t *testing.T) *played {
	t.Helper()
	p := newPlayed(t)
	both := table.Set{First: 0, Count: 2}
	p.contents.Frontends = append(p.contents.Frontends,
		table.Frontend{ID: 3, Addr: key("172.30.0.11"), Port: 30080, Protocol: packet.ProtocolTCP, Flags: table.Narrow, Inside: both, Outside: both},
		table.Frontend{ID: 4, Addr: key("169.254.76.7"), Port: 30080, Protocol: packet.ProtocolTCP, Flags: table.Narrow, Inside: both, Outside: both, AliasOf: 3})
	port := &p.state.Services[0].Ports[0]
	port.Frontends = append(port.Frontends,
		model.Frontend{Kind: model.NodePort, Addr: ip("172.30.0.11"), Port: 30080, Protocol: model.TCP},
		model.Frontend{Kind: model.NodePort, Addr: ip("169.254.76.7"), Port: 30080, Protocol: model.TCP, AliasOf: ip("172.30.0.11")})
	return p
}

// without is a node where the programs of sockets are not attached.
type without struct{ *played }

func (w without) Status() api.Status {
	s := w.played.Status()
	s.Fastpath.Sockets = "no hierarchy"
	return s
}

// TestExplainOwnNodePort: what the node sends to its own node port is decided at the alias;
// what it sends to its other ports, or without the programs of sockets, stays its own.
func TestExplainOwnNodePort(t *testing.T) {
	p := onNodePort(t)
	for _, c := range []struct {
		name     string
		node     Node
		from, to string
		verdict  string
		says     string
	}{
		{"its node port", p, "host", "172.30.0.11:30080/tcp", "forward", "sends the connection to its alias 169.254.76.7"},
		{"another port", p, "host", "172.30.0.11:22/tcp", "pass", "stays on its loopback device"},
		{"another protocol", p, "host", "172.30.0.11:30080/udp", "pass", "stays on its loopback device"},
		{"its node port, without the programs", without{p}, "host", "172.30.0.11:30080/tcp", "pass", "stays on its loopback device"},
		{"a pod", p, "shopper", "172.30.0.11:30080/tcp", "forward", "a port of a Service on the address of a node"},
		{"a pod to the alias", p, "shopper", "169.254.76.7:30080/tcp", "pass", "given back to the kernel"},
	} {
		got, err := ask(t, c.node).Explain(t.Context(), c.from, c.to)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var said []string
		for _, s := range got.Steps {
			said = append(said, s.Text)
		}
		text := strings.Join(append(said, got.Help), "\n")
		if got.Verdict != c.verdict || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s, %q; want %s, with %q", c.name, got.Verdict, text, c.verdict, c.says)
		}
		if c.verdict == "forward" && (got.Service != "default/web" || got.Pod == "") {
			t.Errorf("%s: Service %q, pod %q", c.name, got.Service, got.Pod)
		}
	}
}

// TestAliasesAreNotListed: an alias is nobody's to call.
func TestAliasesAreNotListed(t *testing.T) {
	list, err := ask(t, onNodePort(t)).Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Items[0].Ports[0].Frontends {
		if f.Address == "169.254.76.7" {
			t.Errorf("%+v is listed", f)
		}
	}
	if n := len(list.Items[0].Ports[0].Frontends); n != 3 {
		t.Errorf("%d frontends, want 3", n)
	}
}
