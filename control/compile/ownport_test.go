package compile_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// opened has a node port, asked has a health check port; both say when they were made.
func opened(t *testing.T, name string, port uint16, age int64) *model.Service {
	s := reachable(service(t, name, "10.96.0."+map[string]string{"a": "1", "b": "2", "c": "3"}[name], "10.244.1.5:8080@n1"), model.NodePort, "172.30.0.11", port, model.PolicyCluster)
	if age > 0 {
		s.Created = time.Unix(age, 0)
	}
	return s
}

func asked(t *testing.T, name string, port uint16, age int64) *model.Service {
	s := opened(t, name, 30001, age)
	s.Ports[0].Frontends = s.Ports[0].Frontends[:1]
	s.HealthPort = port
	return s
}

// TestNodePortOfTheAgent: the agent's probes are answered by the agent; the Service says so, has
// its other addresses, and others are as they were.
func TestNodePortOfTheAgent(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	c.SetAgentPorts([]uint16{10256})
	c.SetService(opened(t, "a", 10256, 1))
	c.SetService(opened(t, "b", 30080, 1))
	c.SetService(reachable(service(t, "c", "10.96.0.3", "10.244.1.5:8080@n1"), model.ExternalIP, "172.30.0.11", 10256, model.PolicyCluster))
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "frontends", map[string]string{
		"10.96.0.1:80": "10.244.1.5:8080", "10.96.0.2:80": "10.244.1.5:8080", "10.96.0.3:80": "10.244.1.5:8080", "172.30.0.11:30080": "10.244.1.5:8080",
	}, frontendsOf(s))
	diff(t, "problems", []string{"Service demo/a AddressOfLace", "Service demo/c AddressOfLace"}, problemsOf(problems))
	if m := problems[0].Message; !strings.Contains(m, "node port 10256/TCP is the port of") || !strings.Contains(m, "lace-agent") {
		t.Errorf("message %q", m)
	}
	lost := c.Lost()
	if len(lost) != 2 {
		t.Errorf("lost %v, want both", lost)
	}
	c.SetAgentPorts(nil)
	s, problems = snapshotProblems(t, c, 2)
	if len(problems) != 1 || frontendsOf(s)["172.30.0.11:10256"] == "" { // two want it now
		t.Errorf("without the agent's port: %v, %v", frontendsOf(s), problemsOf(problems))
	}
}

// TestEveryRefusedPortIsTold: one Problem for each reason, which says how many more there are of
// it; another Service's are counted apart.
func TestEveryRefusedPortIsTold(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	c.SetAgentPorts([]uint16{10249, 10256})
	c.SetReserved([]netip.AddrPort{netip.MustParseAddrPort("172.30.0.11:6443")})
	c.SetService(asked(t, "a", 32000, 1))
	all := opened(t, "b", 10256, 2)
	for _, more := range []struct {
		kind model.FrontendKind
		addr string
		port uint16
	}{
		{model.NodePort, "172.30.0.11", 32000}, {model.NodePort, "172.30.0.11", 30080}, {model.ExternalIP, "172.30.0.11", 10249},
		{model.ExternalIP, "172.30.0.11", 6443}, {model.ExternalIP, "10.244.1.2", 80},
		{model.LoadBalancer, "10.244.1.2", 81},
	} {
		all = reachable(all, more.kind, more.addr, more.port, model.PolicyCluster)
	}
	c.SetService(all)
	c.SetService(opened(t, "c", 10256, 3))
	s, problems := snapshotProblems(t, c, 1)
	if frontendsOf(s)["172.30.0.11:30080"] == "" {
		t.Errorf("what nobody keeps is served: %v", frontendsOf(s))
	}
	var told []string
	for _, p := range problems {
		what, _, _ := strings.Cut(p.Message, "; ")
		told = append(told, p.Object+" "+p.Field+" "+p.Reason+": "+what)
	}
	diff(t, "told", []string{
		"demo/b spec.externalIPs AddressOfPod: 10.244.1.2 is the address of a pod of this node, behind device veth-b, which keeps it, so the Service is not served there (and 1 more of its frontends)",
		"demo/b spec.externalIPs AddressOfAPIServer: 172.30.0.11 is the address of the API server, which keeps it, so the Service is not served there",
		"demo/b spec.externalIPs AddressOfLace: 172.30.0.11:10249/TCP is the port of lace-agent (for probes), which keeps it, so the Service is not served there (and 2 more of its frontends)",
		"demo/c spec.ports AddressOfLace: node port 10256/TCP is the port of lace-agent (for probes), which keeps it, so the Service is not served there",
	}, told)
	if lost := c.Lost(); len(lost) != 7 {
		t.Errorf("%d are lost, want all 7: %v", len(lost), lost)
	}
}

// TestAgentPortThatComesLater: a Service that has it on an address of the node, as a node port or
// not, lets it go.
func TestAgentPortThatComesLater(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	c.SetService(reachable(service(t, "a", "10.96.0.1", "10.244.1.5:8080@n1"), model.ExternalIP, "172.30.0.11", 10256, model.PolicyCluster))
	if s, problems := snapshotProblems(t, c, 1); len(problems) > 0 || frontendsOf(s)["172.30.0.11:10256"] == "" {
		t.Errorf("before: %v, %v", frontendsOf(s), problems)
	}
	c.SetAgentPorts([]uint16{10256})
	s, problems := snapshotProblems(t, c, 2)
	if frontendsOf(s)["172.30.0.11:10256"] != "" {
		t.Errorf("it is served still: %v", frontendsOf(s))
	}
	diff(t, "problems", []string{"Service demo/a AddressOfLace"}, problemsOf(problems))
}

// TestNodePortAndHealthCheckPort: of a node port and a health check port of one number the
// older Service keeps its own; the other one says so, and nobody else is concerned.
func TestNodePortAndHealthCheckPort(t *testing.T) {
	const port = 32000
	node, health := []string{"Service demo/a AddressOfLace"}, []string{"Service demo/b AddressTaken"}
	for _, tc := range []struct {
		name         string
		nodeAge, age int64 // of the node port's Service, and of the other
		first        string
		served       bool
		want         []string
	}{
		{"the health check port is older", 2, 1, "a", false, node},
		{"and comes first", 2, 1, "b", false, node},
		{"the node port is older", 1, 2, "a", true, health},
		{"and comes last", 1, 2, "b", true, health},
		{"nobody knows: the node port is there", 0, 0, "a", true, health},
		{"nobody knows: the first by name has it", 0, 0, "b", true, health},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compile.New(nil)
			c.SetAttachments(twoPods())
			both := map[string]*model.Service{"a": opened(t, "a", port, tc.nodeAge), "b": asked(t, "b", port, tc.age)}
			c.SetService(opened(t, "c", 30002, 3))
			c.SetService(both[tc.first])
			snapshot(t, c, 1)
			for n, s := range both {
				if n != tc.first {
					c.SetService(s)
				}
			}
			for generation := uint64(2); generation < 4; generation++ { // it stays so
				s, problems := snapshotProblems(t, c, generation)
				if _, served := frontendsOf(s)["172.30.0.11:32000"]; served != tc.served {
					t.Errorf("the node port is served: %v, want %v", served, tc.served)
				}
				if frontendsOf(s)["172.30.0.11:30002"] == "" {
					t.Error("another node port is not served any more")
				}
				diff(t, "problems", tc.want, problemsOf(problems))
			}
			c.DeleteService(both["b"].Name)
			s, problems := snapshotProblems(t, c, 4)
			if len(problems) > 0 || frontendsOf(s)["172.30.0.11:32000"] == "" {
				t.Errorf("without the health check port: problems %v, frontends %v", problems, frontendsOf(s))
			}
			c.SetService(asked(t, "b", port+1, tc.age))
			c.SetService(asked(t, "b", port+2, tc.age))
			if _, problems = snapshotProblems(t, c, 5); len(problems) > 0 {
				t.Errorf("with another health check port: %v", problems)
			}
		})
	}
}

// TestNodePortThatWasThereBefore: where nothing tells who is older, a node port that is served
// stays, whatever the names are; of two that come together the first by name has the number.
func TestNodePortThatWasThereBefore(t *testing.T) {
	for _, there := range []bool{true, false} {
		c := compile.New(nil)
		c.SetAttachments(twoPods())
		c.SetService(opened(t, "b", 32000, 0))
		if there {
			snapshot(t, c, 1)
		}
		c.SetService(asked(t, "a", 32000, 0))
		s, problems := snapshotProblems(t, c, 2)
		if _, served := frontendsOf(s)["172.30.0.11:32000"]; served != there {
			t.Errorf("the node port was there: %v; it is served: %v", there, served)
		}
		diff(t, "problems", []string{map[bool]string{true: "Service demo/a AddressTaken", false: "Service demo/b AddressOfLace"}[there]}, problemsOf(problems))
	}
}

// TestEachClashOfPortsIsNamed: whoever keeps the number, and however many there are.
func TestEachClashOfPortsIsNamed(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	var want []string
	for i := range 12 {
		port := uint16(32000 + i)
		node := reachable(service(t, fmt.Sprintf("node-%02d", i), fmt.Sprintf("10.96.1.%d", i), "10.244.1.5:8080@n1"), model.NodePort, "172.30.0.11", port, model.PolicyCluster)
		health := service(t, fmt.Sprintf("health-%02d", i), fmt.Sprintf("10.96.2.%d", i), "10.244.1.5:8080@n1")
		health.HealthPort = port
		node.Created, health.Created = time.Unix(2, 0), time.Unix(1, 0)
		if i%6 == 5 { // all others lose their node port
			node.Created = time.Unix(0, 1)
			want = append(want, fmt.Sprintf("Service demo/health-%02d AddressTaken", i))
		}
		c.SetService(node)
		c.SetService(health)
	}
	_, problems := snapshotProblems(t, c, 1)
	var got []string
	for _, p := range problemsOf(problems) {
		if strings.HasSuffix(p, " AddressTaken") {
			got = append(got, p)
		}
	}
	diff(t, "health check ports that nobody answers", want, got)
	if len(problems) != 12 {
		t.Errorf("%d problems, want one for each clash", len(problems))
	}
}

// TestHealthCheckPortOfItsOwnNodePort: a Service that gives one number twice is asked there, and
// is told.
func TestHealthCheckPortOfItsOwnNodePort(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	s := opened(t, "a", 32000, 1)
	s.HealthPort = 32000
	c.SetService(s)
	_, problems := snapshotProblems(t, c, 1)
	diff(t, "problems", []string{"Service demo/a AddressOfLace"}, problemsOf(problems))
	udp := opened(t, "b", 32000, 0)
	udp.Ports[0].Protocol = model.UDP
	for i := range udp.Ports[0].Frontends {
		udp.Ports[0].Frontends[i].Protocol = model.UDP
	}
	c.SetService(udp)
	if _, problems = snapshotProblems(t, c, 2); len(problems) != 1 {
		t.Errorf("UDP is another matter: %v", problems)
	}
}

// TestANodePortIsOneWhereverItIs: of a number that another Service has, it is said once and by
// its number, whatever addresses the node has; at one of them alone it is said with that one.
func TestANodePortIsOneWhereverItIs(t *testing.T) {
	const own, other = "172.30.0.11", "172.30.0.12"
	twice := func(name, addr string, port uint16) *model.Service {
		s := reachable(service(t, name, addr, "10.244.1.5:8080@n1"), model.NodePort, own, port, model.PolicyCluster)
		return reachable(s, model.NodePort, other, port, model.PolicyCluster)
	}
	for _, c := range []struct {
		name   string
		holder *model.Service
		want   string
	}{
		{"a node port", twice("a", "10.96.0.1", 30080), "node port 30080/TCP belongs to Service demo/a, which keeps it; give this Service a node port of its own"},
		{"an address of the node", reachable(service(t, "a", "10.96.0.1", "10.244.1.5:8080@n1"), model.ExternalIP, other, 30080, model.PolicyCluster),
			other + ":30080/TCP belongs to Service demo/a, which keeps it; give this Service a node port of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			compiler := compile.New(nil)
			compiler.SetService(c.holder)
			compiler.SetService(twice("b", "10.96.0.2", 30080))
			_, problems := snapshotProblems(t, compiler, 1)
			if len(problems) != 1 || problems[0].Object != "demo/b" || problems[0].Message != c.want {
				t.Errorf("%v, want one of demo/b: %s", problems, c.want)
			}
		})
	}
}
