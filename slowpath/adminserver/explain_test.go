package adminserver

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

func stages(e api.Explanation) []string {
	var out []string
	for _, s := range e.Steps {
		out = append(out, s.Stage)
	}
	return out
}

func TestExplain(t *testing.T) {
	cases := []struct {
		name     string
		from, to string
		port     string // device on which the packet comes in
		verdict  string
		reason   string
		service  string
	}{
		{"a pod by its short name", "web-1", "10.96.0.10:80/tcp", "vethA", "forward", "new-flow", "default/web"},
		{"a pod by its full name", "default/web-1", "10.96.0.10:80/TCP", "vethA", "forward", "new-flow", "default/web"},
		{"a pod by its address", "10.244.1.8", "10.96.0.10:80/tcp", "shopper", "forward", "new-flow", "default/web"},
		{"a pod by its device", "shopper", "10.96.0.10:80/tcp", "shopper", "forward", "new-flow", "default/web"},
		{"the node itself", "host", "10.96.0.10:80/tcp", "lace0", "forward", "new-flow", "default/web"},
		{"the node by its address", "172.30.0.11", "10.96.0.10:80/tcp", "lace0", "forward", "new-flow", "default/web"},
		{"a client outside", "192.0.2.9", "10.96.0.10:80/tcp", "eth0", "forward", "new-flow", "default/web"},
		{"a pod of another node comes in by the uplink", "web-2", "10.96.0.10:80/tcp", "eth0", "forward", "new-flow", "default/web"},
		{"a Service without endpoints", "web-1", "10.96.0.20:53/udp", "vethA", "answer", "no-endpoints", "shop/empty"},
		{"a port that the Service does not have", "web-1", "10.96.0.10:81/tcp", "vethA", "answer", "unknown-port", ""},
		{"a protocol that the Service does not have", "web-1", "10.96.0.10:80/sctp", "vethA", "answer", "unknown-port", ""},
		{"an address that is no Service's", "web-1", "10.244.2.6:8080/tcp", "vethA", "pass", "not-claimed", ""},
		{"an address of a service range that no Service has, from a pod", "web-1", "10.96.9.9:80/tcp", "vethA", "drop", "unallocated-vip", ""},
		{"an address of a service range that no Service has, from outside", "192.0.2.9", "10.96.9.9:80/tcp", "eth0", "drop", "unallocated-vip", ""},
		{"an address of a service range that no Service has, from the node", "host", "10.96.9.9:80/tcp", "lace0", "drop", "unallocated-vip", ""},
		{"a node port at a loopback address", "host", "127.0.0.1:30053/tcp", "lace0", "pass", "not-claimed", ""},
		{"the node to the world", "host", "192.0.2.9:80/tcp", "lace0", "pass", "not-claimed", ""},
	}
	c := ask(t, newPlayed(t))
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			got, err := c.Explain(t.Context(), one.from, one.to)
			if err != nil {
				t.Fatal(err)
			}
			if got.Port != one.port || got.Verdict != one.verdict || got.Reason != one.reason || got.Service != one.service {
				t.Errorf("on %s: %s, %s, service %q; want on %s: %s, %s, service %q\n%+v",
					got.Port, got.Verdict, got.Reason, got.Service, one.port, one.verdict, one.reason, one.service, got.Steps)
			}
			if got.Help == "" || len(got.Steps) == 0 || got.Steps[0].Stage != "claim" || got.Generation != 7 {
				t.Errorf("%+v: want a reason in words, the step claim first, and generation 7", got)
			}
			if forwarded := got.Verdict == "forward"; forwarded != (got.Backend != "") || forwarded != (got.Pod != "") {
				t.Errorf("verdict %s with backend %q and pod %q", got.Verdict, got.Backend, got.Pod)
			}
			if one.verdict != "pass" && !slices.Contains(stages(got), "verdict") {
				t.Errorf("steps %v: want those of the pipeline", stages(got))
			}
		})
	}
}

func TestExplainRefuses(t *testing.T) {
	cases := []struct{ name, from, to, says string }{
		{"a name that nobody has", "web-9", "10.96.0.10:80/tcp", "web-9"},
		{"a pod behind no Service, by its full name", "default/shopper", "10.96.0.10:80/tcp", "say the pod's address or its device"},
		{"a loopback address", "127.0.0.1", "10.96.0.10:80/tcp", "say host"},
		{"a loopback address of IPv6", "::1", "[fd00:10:96::10]:80/tcp", "say host"},
		{"a multicast address", "224.0.0.1", "10.96.0.10:80/tcp", "multicast"},
		{"the unspecified address", "::", "[fd00:10:96::10]:80/tcp", "unspecified"},
		{"a name instead of an address", "host", "web:80/tcp", "names are not looked up"},
		{"a port that is too large", "host", "10.96.0.10:99999/tcp", "the port is too large"},
		{"a port that is far too large", "host", "[fd00:10:96::10]:99999999999999999999/tcp", "the port is too large"},
		{"an uplink", "eth0", "10.96.0.10:80/tcp", "eth0 is an uplink, through which many clients come: say the address"},
		{"two families", "fd00::1", "10.96.0.10:80/tcp", "families"},
		{"a pod without an address of the family", "web-1", "[fd00:10:96::10]:80/tcp", "family"},
		{"a device without an address of the family", "shopper", "[fd00:10:96::10]:80/tcp", "family"},
		{"the node without an address of the family", "host", "[fd00:10:96::10]:80/tcp", "family"},
		{"an address behind a device that is no port", "10.9.1.1", "10.96.0.10:80/tcp", "ip route get"},
		{"an address to which nothing leads", "fd00::1", "[fd00:10:96::10]:80/tcp", "ip route get"},
	}
	c := ask(t, newPlayed(t))
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			if _, err := c.Explain(t.Context(), one.from, one.to); err == nil || !strings.Contains(err.Error(), one.says) {
				t.Errorf("got %v, want an error with %q", err, one.says)
			}
		})
	}
}

func TestExplainOfAPodNameInTwoNamespacesAsksWhich(t *testing.T) {
	p := newPlayed(t)
	c4 := p.state.Services[1].Ports[0].Families[4]
	twin := p.state.Services[0].Ports[0].Families[4].Endpoints[0]
	twin.Pod = "shop/web-1"
	c4.Endpoints = append(c4.Endpoints, twin)
	p.state.Services[1].Ports[0].Families[4] = c4
	_, err := ask(t, p).Explain(t.Context(), "web-1", "10.96.0.10:80/tcp")
	if err == nil || !strings.Contains(err.Error(), "default/web-1, shop/web-1") {
		t.Errorf("got %v, want both names", err)
	}
}

func TestExplainShowsRegisteredFlows(t *testing.T) {
	p := newPlayed(t)
	backend := netip.MustParseAddrPort("10.244.2.6:8080")
	for port := range uint16(maxLive + 5) {
		client := netip.AddrPortFrom(ip("10.244.1.8"), 40000+port)
		p.register(t, client, backend, client)
	}
	other := netip.MustParseAddrPort("10.244.1.5:40000")
	p.register(t, other, backend, other)
	c := ask(t, p)
	got, err := c.Explain(t.Context(), "shopper", "10.96.0.10:80/tcp")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Live) != maxLive {
		t.Errorf("%d flows, want %d", len(got.Live), maxLive)
	}
	for _, f := range got.Live {
		if !strings.HasPrefix(f.Client, "10.244.1.8:") || f.Pod != "default/web-2" {
			t.Errorf("%+v: want flows of this client with their pod", f)
		}
	}
	p.reset(t)
	if again, err := c.Explain(t.Context(), "shopper", "10.96.0.10:80/tcp"); err != nil || len(again.Live) != 0 {
		t.Errorf("%d flows are shown after all were closed (%v), want none", len(again.Live), err)
	}
	before := p.flows.Len()
	if _, err := c.Explain(t.Context(), "shopper", "10.96.0.10:80/tcp"); err != nil {
		t.Fatal(err)
	}
	if p.flows.Len() != before {
		t.Errorf("%d flows before and %d after: explaining registers nothing", before, p.flows.Len())
	}
}

func TestExplainWithoutTheHostPort(t *testing.T) {
	p := newPlayed(t)
	p.contents.Ports = slices.DeleteFunc(p.contents.Ports, func(q table.Port) bool { return q.Kind == table.PortHost })
	p.contents.Addresses = p.contents.Addresses[1:]
	p.contents.Routes = p.contents.Routes[:1]
	if _, err := ask(t, p).Explain(t.Context(), "host", "10.96.0.10:80/tcp"); err == nil || !strings.Contains(err.Error(), "lace0") {
		t.Errorf("got %v, want an error that names lace0", err)
	}
}

// What a reader could take wrong is said in a note.
func TestExplainNotes(t *testing.T) {
	cases := []struct{ name, from, only, says string }{
		{"a pod of another node", "web-2", "10.244.1.5", "this pod is on node n2"},
		{"a pod that is its own backend", "web-1", "10.244.1.5", "the backend sees 10.96.0.10:"},
		{"an outside client whose backend is on another node", "192.0.2.9", "10.244.2.6", "the backend sees 172.30.0.11:"},
		{"a pod whose backend is another pod", "shopper", "10.244.1.5", ""},
		{"a node's packet to its own stack", "host", "172.30.0.11", "a packet of the node to itself"},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			p := newPlayed(t)
			p.contents.Backends[0].Addr = key(one.only)
			p.contents.Backends = p.contents.Backends[:1]
			p.contents.BackendIDs = []uint32{1}
			p.contents.Frontends[0].Inside.Count, p.contents.Frontends[0].Outside.Count = 1, 1
			got, err := ask(t, p).Explain(t.Context(), one.from, "10.96.0.10:80/tcp")
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(got.Notes, "\n")
			if !strings.Contains(notes, one.says) || (one.says == "") != (notes == "") {
				t.Errorf("notes %q, want %q", notes, one.says)
			}
		})
	}
}

// Without a fast path nobody decides: the verdict says what becomes of a new connection,
// and not what Go would have done with it.
func TestExplainWithoutFastpath(t *testing.T) {
	cases := []struct{ name, from, to, verdict, reason string }{
		{"a new connection", "shopper", "10.96.0.10:80/tcp", "drop", "no-worker"},
		{"a refusal that nobody gives", "shopper", "10.96.0.20:53/udp", "drop", "no-worker"},
		{"what the kernel drops by itself", "shopper", "10.96.9.9:80/tcp", "drop", "unallocated-vip"},
		{"what Lace does not claim", "shopper", "10.244.2.6:8080/tcp", "pass", "not-claimed"},
	}
	p := newPlayed(t)
	p.down = "no sign of life for 3 s"
	c := ask(t, p)
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			got, err := c.Explain(t.Context(), one.from, one.to)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != one.verdict || got.Reason != one.reason || got.FastpathDown != p.down || got.Backend != "" {
				t.Errorf("%+v: want %s, %s, no backend, and why the fast path is down", got, one.verdict, one.reason)
			}
			if told := slices.Contains(stages(got), "trunk"); told != (one.reason == "no-worker") {
				t.Errorf("steps %v: want the one that loses the packet where no worker takes it", stages(got))
			}
			if last := got.Steps[len(got.Steps)-1]; last.Stage == "verdict" && !strings.Contains(last.Text, one.reason) {
				t.Errorf("the last step says %q, want %s", last.Text, one.reason)
			}
		})
	}
}

// A refusal names what the client gets, and no step says that its packet is forwarded.
func TestExplainOfARefusal(t *testing.T) {
	c := ask(t, newPlayed(t))
	for to, says := range map[string]string{"10.96.0.10:81/tcp": "a TCP reset", "10.96.0.20:53/udp": "an ICMP port unreachable"} {
		got, err := c.Explain(t.Context(), "shopper", to)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.Index(stages(got), "answer")
		if i < 0 || !strings.Contains(got.Steps[i].Text, says) || slices.Contains(stages(got), "forward") {
			t.Errorf("%s: steps %+v, want an answer with %q and no forward", to, got.Steps, says)
		}
	}
}

// Addresses that are in no table are told from those that are.
func TestServicesSayWhatIsServed(t *testing.T) {
	p := newPlayed(t)
	port := &p.state.Services[0].Ports[0]
	port.Frontends = append(port.Frontends, model.Frontend{Kind: model.NodePort, Addr: ip("172.30.0.11"), Port: 30080, Protocol: model.TCP})
	got, err := ask(t, p).Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got.Items[0].Ports[0].Frontends {
		if want := f.Address == "10.96.0.10"; f.Served != want {
			t.Errorf("%s %s served: %v, want %v", f.Kind, f.Address, f.Served, want)
		}
	}
}
