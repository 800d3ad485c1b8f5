package compile_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// reachable gives a Service of service() another frontend, with the sets of the external
// policy.
func reachable(s *model.Service, kind model.FrontendKind, addr string, port uint16, external model.Policy) *model.Service {
	s.ExternalPolicy = external
	p := &s.Ports[0]
	a := netip.MustParseAddr(addr)
	p.Frontends = append(p.Frontends, model.Frontend{Kind: kind, Addr: a, Port: port, Protocol: p.Protocol})
	fam := 6
	if a.Is4() {
		fam = 4
	}
	c := p.Families[fam]
	c.External = eligible.Select(c.Endpoints, eligible.Query{Policy: external, Node: here})
	c.Cluster = eligible.Select(c.Endpoints, eligible.Query{Node: here})
	p.Families[fam] = c
	return s
}

// setsOf writes the sets of one frontend: inside / outside / keep.
func setsOf(t testing.TB, s *table.Snapshot, addr string, port uint16) string {
	t.Helper()
	a := packetAddr(addr)
	f := s.Frontend(0, &a, uint8(model.TCP), port)
	if f == nil {
		return "not served"
	}
	write := func(ids []uint32, empty table.Empty) string {
		words := []string{}
		for _, id := range ids {
			words = append(words, s.Backend(id).Addr.String())
		}
		if len(words) == 0 {
			return []string{"refuse", "drop"}[empty]
		}
		return strings.Join(words, " ")
	}
	return fmt.Sprintf("%s / %s / %s", write(s.Set(f.Inside), f.Inside.Empty), write(s.Set(f.Outside), f.Outside.Empty), write(s.Keep(f), 0))
}

// TestExternalPolicy: clients inside the cluster get what policy Cluster gives at every
// external address, clients outside what the external policy gives; the ClusterIP goes by the
// internal policy for both.
func TestExternalPolicy(t *testing.T) {
	const far, near, draining = "10.244.2.5:1@n2", "10.244.1.5:1@n1", "10.244.1.6:1@n1,draining"
	for _, tc := range []struct {
		name, endpoints    string
		internal, external model.Policy
		clusterIP, others  string
	}{
		{"Cluster", near + " " + far, 0, model.PolicyCluster,
			"10.244.1.5 10.244.2.5 / 10.244.1.5 10.244.2.5 / 10.244.1.5 10.244.2.5", "10.244.1.5 10.244.2.5 / 10.244.1.5 10.244.2.5 / 10.244.1.5 10.244.2.5"},
		{"Local with a local endpoint", near + " " + far, 0, model.PolicyLocal,
			"10.244.1.5 10.244.2.5 / 10.244.1.5 10.244.2.5 / 10.244.1.5 10.244.2.5", "10.244.1.5 10.244.2.5 / 10.244.1.5 / 10.244.1.5 10.244.2.5"},
		{"Local without one drops clients outside only", far, 0, model.PolicyLocal,
			"10.244.2.5 / 10.244.2.5 / 10.244.2.5", "10.244.2.5 / drop / 10.244.2.5"},
		{"Local with a draining one on this node and a ready one elsewhere falls back for each by itself", draining + " " + far, 0, model.PolicyLocal,
			"10.244.2.5 / 10.244.2.5 / 10.244.1.6 10.244.2.5", "10.244.2.5 / 10.244.1.6 / 10.244.1.6 10.244.2.5"},
		{"internal Local does not govern external addresses", far, model.PolicyLocal, model.PolicyCluster,
			"drop / drop / 10.244.2.5", "10.244.2.5 / 10.244.2.5 / 10.244.2.5"},
		{"without any endpoint everybody is refused, Local or not", "10.244.1.5:1@n1,down", model.PolicyLocal, model.PolicyLocal,
			"refuse / refuse / refuse", "refuse / refuse / refuse"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			web := service(t, "web", "10.96.0.10", tc.endpoints, tc.internal)
			reachable(web, model.NodePort, "172.30.0.11", 30080, tc.external)
			reachable(web, model.LoadBalancer, "203.0.113.1", 80, tc.external)
			reachable(web, model.ExternalIP, "198.51.100.1", 80, tc.external)
			c := compile.New(nil)
			c.SetAttachments(twoPods())
			c.SetService(web)
			s, problems := snapshotProblems(t, c, 1)
			diff(t, "problems", []string(nil), problemsOf(problems))
			diff(t, "ClusterIP", tc.clusterIP, setsOf(t, s, "10.96.0.10", 80))
			diff(t, "NodePort", tc.others, setsOf(t, s, "172.30.0.11", 30080))
			diff(t, "LoadBalancer", tc.others, setsOf(t, s, "203.0.113.1", 80))
			diff(t, "ExternalIP", tc.others, setsOf(t, s, "198.51.100.1", 80))
		})
	}
}

// vipsOf lists the addresses that are Lace's whole, and the ports that are alone.
func vipsOf(s *table.Snapshot) (whole, narrow []string) {
	for _, a := range s.VIPs {
		whole = append(whole, a.String())
	}
	for _, f := range s.Frontends() {
		if f.Flags&table.Narrow != 0 {
			narrow = append(narrow, fmt.Sprintf("%s:%d", f.Addr, f.Port))
		}
	}
	return whole, narrow
}

// TestAddressesOfNodesAreSharedByPort: of an address that a node has, this one or another,
// a Service gets its port and the rest stays the node's; every other address is its own.
func TestAddressesOfNodesAreSharedByPort(t *testing.T) {
	web := service(t, "web", "10.96.0.10", "10.244.1.5:1@n1 172.30.0.11:1@n1")
	reachable(web, model.NodePort, "172.30.0.11", 30080, 0)
	reachable(web, model.ExternalIP, "172.30.0.11", 443, 0)
	reachable(web, model.ExternalIP, "172.30.0.12", 443, 0)
	reachable(web, model.LoadBalancer, "172.30.0.12", 80, 0)
	reachable(web, model.LoadBalancer, "203.0.113.1", 80, 0)
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	c.SetNodes(map[netip.Addr]bool{netip.MustParseAddr("172.30.0.11"): true, netip.MustParseAddr("172.30.0.12"): true})
	c.SetService(web)
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "problems", []string(nil), problemsOf(problems))
	whole, narrow := vipsOf(s)
	diff(t, "whole", []string{"10.96.0.10", "203.0.113.1"}, whole)
	diff(t, "narrow", []string{"172.30.0.11:30080", "172.30.0.11:443", "172.30.0.12:443", "172.30.0.12:80"}, narrow)
	diff(t, "external", "[203.0.113.1]", fmt.Sprint(c.External()))
	diff(t, "a backend on the host network is offered, though its address has node ports",
		"10.244.1.5 172.30.0.11 / 10.244.1.5 172.30.0.11 / 10.244.1.5 172.30.0.11", setsOf(t, s, "172.30.0.11", 30080))

	c.SetNodes(map[netip.Addr]bool{netip.MustParseAddr("172.30.0.11"): true})
	s = snapshot(t, c, 2)
	whole, narrow = vipsOf(s)
	diff(t, "whole when the other node is gone", []string{"10.96.0.10", "172.30.0.12", "203.0.113.1"}, whole)
	diff(t, "narrow then", []string{"172.30.0.11:30080", "172.30.0.11:443", "172.30.0.12:443"}, narrow)
}

// TestExternalAddressIsOnePort: whoever may write a Service may write anybody's address as an
// external one, so it gets the port and never the address.
func TestExternalAddressIsOnePort(t *testing.T) {
	web := service(t, "web", "10.96.0.10", "10.244.1.5:1")
	for _, a := range []string{"198.51.100.1", "10.244.2.7"} {
		reachable(web, model.ExternalIP, a, 80, 0)
	}
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	c.SetService(web)
	s := snapshot(t, c, 1)
	whole, narrow := vipsOf(s)
	diff(t, "whole", []string{"10.96.0.10"}, whole)
	diff(t, "narrow", []string{"198.51.100.1:80", "10.244.2.7:80"}, narrow)
	diff(t, "routed", "[]", fmt.Sprint(c.External()))
}

// TestAddressOfAPod: nobody may have the address of a pod, by whatever kind.
func TestAddressOfAPod(t *testing.T) {
	for kind, field := range map[model.FrontendKind]string{
		model.ClusterIP: "spec.clusterIPs", model.ExternalIP: "spec.externalIPs", model.LoadBalancer: "status.loadBalancer.ingress",
	} {
		web := reachable(service(t, "web", "10.96.0.10", "10.244.1.5:1"), kind, "10.244.1.2", 80, 0)
		c := compile.New(nil)
		c.SetAttachments(twoPods())
		c.SetService(web)
		s, problems := snapshotProblems(t, c, 1)
		diff(t, "the pod's address", "not served", setsOf(t, s, "10.244.1.2", 80))
		diff(t, "problems", []string{"Service demo/web AddressOfPod"}, problemsOf(problems))
		if len(problems) == 1 && problems[0].Field != field {
			t.Errorf("%s: field %q, want %q", kind, problems[0].Field, field)
		}
	}
}

// TestNodePortTwice: the older Service keeps a node port, and the younger one all the rest.
func TestNodePortTwice(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	for i, name := range []string{"young", "old"} {
		s := service(t, name, fmt.Sprintf("10.96.0.1%d", i), fmt.Sprintf("10.244.1.5%d:1", i))
		s.Created = created.AddDate(0, 0, -i)
		c.SetService(reachable(s, model.NodePort, "172.30.0.11", 30080, 0))
	}
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "node port", "10.244.1.51 / 10.244.1.51 / 10.244.1.51", setsOf(t, s, "172.30.0.11", 30080))
	diff(t, "the younger one's ClusterIP", "10.244.1.50 / 10.244.1.50 / 10.244.1.50", setsOf(t, s, "10.96.0.10", 80))
	diff(t, "problems", []string{"Service demo/young AddressTaken"}, problemsOf(problems))
	if p := problems[0]; p.Field != "spec.ports" || !strings.Contains(p.Message, "node port of its own") {
		t.Errorf("problem %v: want spec.ports, and another node port as remedy", p)
	}
}

// TestSourceRanges: they guard the balancer's addresses and no others, family by family, and
// a change of them is a reason to look at every flow again.
func TestSourceRanges(t *testing.T) {
	web := service(t, "web", "10.96.0.10 fd00:10:96::10", "10.244.1.5:1 [fd00:10:244:1::5]:1")
	for _, a := range []string{"203.0.113.1", "2001:db8::1"} {
		reachable(web, model.LoadBalancer, a, 80, 0)
	}
	reachable(web, model.ExternalIP, "198.51.100.1", 80, 0)
	reachable(web, model.NodePort, "172.30.0.11", 30080, 0)
	from := func(prefixes ...string) map[int][]netip.Prefix {
		out := map[int][]netip.Prefix{4: {}}
		for _, p := range prefixes {
			out[4] = append(out[4], netip.MustParsePrefix(p))
		}
		return out
	}
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	show := func(generation uint64, sources map[int][]netip.Prefix) (text string, frontend uint16) {
		next := *web
		next.Sources = sources
		c.SetService(&next)
		s := snapshot(t, c, generation)
		for i := range s.Frontends() {
			f := &s.Frontends()[i]
			if f.Flags&table.Restricted == 0 {
				continue
			}
			text += f.Addr.String()
			frontend = f.Generation
			for _, r := range s.Sources(f) {
				text += fmt.Sprintf(" %s-%s", r.First, r.Last)
			}
		}
		return text, frontend
	}
	first, g1 := show(1, from("192.0.2.128/25", "10.0.0.0/8", "192.0.2.0/25", "10.1.0.0/16", "192.0.3.0/24"))
	diff(t, "sorted, and joined where they overlap or touch", "203.0.113.1 10.0.0.0-10.255.255.255 192.0.2.0-192.0.3.255", first)
	same, g2 := show(2, from("192.0.2.0/23", "10.0.0.0/8"))
	diff(t, "the same in other words", first, same)
	if g2 != g1 {
		t.Errorf("generation went from %d to %d without a change", g1, g2)
	}
	last := map[int][]netip.Prefix{6: {netip.MustParsePrefix("ffff:1::/32"), netip.MustParsePrefix("ffff::/16"), netip.MustParsePrefix("2001:db8::/32")}}
	end, _ := show(3, last)
	diff(t, "up to the last address of all", "2001:db8::1 2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff ffff::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", end)
	nobody, g3 := show(4, from())
	diff(t, "nobody", "203.0.113.1", nobody)
	if g3 == g2 {
		t.Errorf("generation stays %d with other sources", g3)
	}
	open, _ := show(5, nil)
	diff(t, "open", "", open)
}

// TestSession: one session for all addresses of a port in one family, and another one for
// every other port, family, Service, and for a Service that was made anew.
func TestSession(t *testing.T) {
	seen := map[uint64]string{}
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	session := func(uid, addr string, generation uint64) uint64 {
		t.Helper()
		web := service(t, "web", "10.96.0.10 fd00:10:96::10", "10.244.1.5:1 [fd00:10:244:1::5]:1")
		reachable(web, model.NodePort, "172.30.0.11", 30080, 0)
		second := web.Ports[0]
		second.Name, second.Port = "b", 81
		second.Frontends = []model.Frontend{{Kind: model.ClusterIP, Addr: netip.MustParseAddr("10.96.0.10"), Port: 81, Protocol: model.TCP}}
		web.Ports = append(web.Ports, second)
		web.UID, web.Affinity = uid, 10800
		c.SetService(web)
		s := snapshot(t, c, generation)
		at := netip.MustParseAddrPort(addr)
		a := packetAddr(at.Addr().String())
		f := s.Frontend(0, &a, uint8(model.TCP), at.Port())
		if f.Affinity != 10800 || f.Session == 0 {
			t.Errorf("%s: affinity %d, session %d", addr, f.Affinity, f.Session)
		}
		return f.Session
	}
	clusterIP := session("1", "10.96.0.10:80", 1)
	if nodePort := session("1", "172.30.0.11:30080", 2); nodePort != clusterIP {
		t.Error("the node port has another session than the ClusterIP")
	}
	seen[clusterIP] = "the first"
	for i, tc := range []struct{ name, uid, addr string }{
		{"the other family", "1", "[fd00:10:96::10]:80"}, {"the other port", "1", "10.96.0.10:81"}, {"the Service made anew", "2", "10.96.0.10:80"},
	} {
		s := session(tc.uid, tc.addr, uint64(3+i))
		if was := seen[s]; was != "" {
			t.Errorf("%s has the session of %s", tc.name, was)
		}
		seen[s] = tc.name
	}
}

// TestListsAreShared: many addresses of a port do not make the lists longer.
func TestListsAreShared(t *testing.T) {
	web := service(t, "web", "10.96.0.10", "10.244.1.5:1 10.244.1.6:1 10.244.1.7:1,draining")
	for i := range 50 {
		reachable(web, model.ExternalIP, fmt.Sprintf("198.51.100.%d", i), 80, 0)
	}
	c := compile.New(nil)
	c.SetService(web)
	if n := len(snapshot(t, c, 1).Contents().BackendIDs); n != 2*(2+3) {
		t.Errorf("%d backend ids for 51 frontends of two kinds, want 10", n)
	}
}
