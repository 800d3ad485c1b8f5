package compile_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// TestHolderKeepsTheAddress: a Service that comes later takes an address from the one
// that has it only when it is older for certain, whatever the names are, also when
// Compiler and snapshot were there before.
func TestHolderKeepsTheAddress(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, tc := range []struct {
		name         string
		holder, late time.Time
		keeps        bool
		why          string
	}{
		{"neither says when it was made", time.Time{}, time.Time{}, true, "which keeps it"},
		{"both were made in one second", at(100), at(100), true, "which keeps it"},
		{"the holder does not say", time.Time{}, at(100), true, "which keeps it"},
		{"the late one does not say", at(100), time.Time{}, true, "which keeps it"},
		{"the late one is younger", at(100), at(200), true, "which is older"},
		{"the late one is older", at(200), at(100), false, "which is older"},
	} {
		for _, restart := range []bool{false, true} {
			c := compile.New(nil)
			web := service(t, "web", "10.96.0.10", "10.244.1.5:8080 10.244.1.6:8080")
			api := service(t, "api", "10.96.0.10", "10.244.1.9:8080")
			web.Created, api.Created = tc.holder, tc.late
			c.SetService(web)
			last := snapshot(t, c, 1)
			if restart {
				c = compile.New(last)
				c.SetService(web)
			}
			c.SetService(api)
			s, problems := snapshotProblems(t, c, 2)
			want, loser := "10.244.1.5:8080 10.244.1.6:8080", "Service demo/api AddressTaken"
			if !tc.keeps {
				want, loser = "10.244.1.9:8080", "Service demo/web AddressTaken"
			}
			diff(t, tc.name, map[string]string{"10.96.0.10:80": want}, frontendsOf(s))
			diff(t, tc.name, []string{loser}, problemsOf(problems))
			if len(problems) == 1 && !strings.Contains(problems[0].Message, tc.why) {
				t.Errorf("%s: message %q, want %q in it", tc.name, problems[0].Message, tc.why)
			}
		}
	}
}

// TestAddressInUseOnTheNode: a Service cannot take an address of the node or of a pod,
// whichever comes first, and has it when they let go. Its other addresses are served.
func TestAddressInUseOnTheNode(t *testing.T) {
	for _, tc := range []struct{ name, addr, reason, whose string }{
		{"the node's own address", "172.30.0.11", "AddressOfNode", "this node itself"},
		{"the node's own IPv6 address", "fd30::11", "AddressOfNode", "this node itself"},
		{"a pod's address", "10.244.1.2", "AddressOfPod", "veth-b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compile.New(nil)
			c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080"))
			c.SetService(service(t, "odd", tc.addr, "10.244.1.5:8080 [fd00::5]:8080"))
			if s, problems := snapshotProblems(t, c, 1); len(s.Frontends()) != 2 || len(problems) != 0 {
				t.Errorf("nobody has the address: frontends %v, problems %v; want both and none", frontendsOf(s), problems)
			}
			c.SetAttachments(twoPods())
			s, problems := snapshotProblems(t, c, 2)
			diff(t, "frontends with the address in use", map[string]string{"10.96.0.10:80": "10.244.1.5:8080"}, frontendsOf(s))
			diff(t, "problems", []string{"Service demo/odd " + tc.reason}, problemsOf(problems))
			if len(problems) == 1 && (!strings.Contains(problems[0].Message, tc.addr) || !strings.Contains(problems[0].Message, tc.whose)) {
				t.Errorf("message %q does not name %s and %s", problems[0].Message, tc.addr, tc.whose)
			}
			c.SetAttachments(model.Attachments{})
			if s, problems := snapshotProblems(t, c, 3); len(s.Frontends()) != 2 || len(problems) != 0 {
				t.Errorf("the address is free again: frontends %v, problems %v; want both and none", frontendsOf(s), problems)
			}
		})
	}
}

// TestTwoServicesWithThePodsAddress: both are refused, and each says so.
func TestTwoServicesWithThePodsAddress(t *testing.T) {
	c := compile.New(nil)
	c.SetAttachments(twoPods())
	c.SetService(service(t, "a", "10.244.1.2", "10.244.1.5:8080"))
	c.SetService(service(t, "b", "10.244.1.2", "10.244.1.6:8080"))
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "frontends", map[string]string{}, frontendsOf(s))
	diff(t, "problems", []string{"Service demo/a AddressOfPod", "Service demo/b AddressOfPod"}, problemsOf(problems))
	c.DeleteService(model.Name{Namespace: "demo", Name: "a"})
	_, problems = snapshotProblems(t, c, 2)
	diff(t, "problems without a", []string{"Service demo/b AddressOfPod"}, problemsOf(problems))
}

// TestEndpointThatIsAService: it is offered to nobody and becomes a Problem, its own
// Service or another's; the other endpoints work, and it is one again when the Service
// goes.
func TestEndpointThatIsAService(t *testing.T) {
	c := compile.New(nil)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080 10.96.0.20:80 10.96.0.10:8080"))
	only := service(t, "only", "10.96.0.11", "10.96.0.20:80")
	c.SetService(only)
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "before there is such a Service", map[string]string{"10.96.0.10:80": "10.96.0.20:80 10.244.1.5:8080", "10.96.0.11:80": "10.96.0.20:80"}, frontendsOf(s))
	diff(t, "its own address", []string{"Service demo/web AddressOfService"}, problemsOf(problems))

	api := service(t, "api", "10.96.0.20", "10.244.1.9:8080")
	c.SetService(api)
	s, problems = snapshotProblems(t, c, 2)
	diff(t, "with it", map[string]string{"10.96.0.10:80": "10.244.1.5:8080", "10.96.0.11:80": "refuse", "10.96.0.20:80": "10.244.1.9:8080"}, frontendsOf(s))
	diff(t, "backends", map[string]string{"10.244.1.5:8080": "serving", "10.244.1.9:8080": "serving"}, backendsOf(s))
	diff(t, "problems", []string{"Service demo/only AddressOfService", "Service demo/web AddressOfService"}, problemsOf(problems))
	if m := problems[0].Message; !strings.Contains(m, "10.96.0.20:80") || !strings.Contains(m, "demo/api") {
		t.Errorf("message %q does not name the endpoint and the Service", m)
	}
	if c.Changed() {
		t.Error("nothing was set, and Changed() says true")
	}
	c.DeleteService(api.Name)
	s, _ = snapshotProblems(t, c, 3)
	diff(t, "without it again", "10.96.0.20:80", frontendsOf(s)["10.96.0.11:80"])
}

// TestLost: what a Service asks for and another one has is lost to it, with the name of the
// holder; nothing else is: neither the holder's, nor what it asks for twice, nor an alias, which
// the Service has not asked for. What nobody can have is not lost to a Service.
func TestLost(t *testing.T) {
	const own, alias = "172.30.0.11", "169.254.76.1"
	place := func(name, addr string, port uint16) model.Place {
		return model.Place{Service: model.Name{Namespace: "demo", Name: name}, Addr: netip.MustParseAddr(addr), Port: port, Protocol: model.TCP}
	}
	c := compile.New(nil)
	for i, name := range []string{"first", "second"} {
		s := aliased(service(t, name, "10.96.0.1", "10.244.1.5:1@n1"), own, alias, 30080)
		s = reachable(s, model.ExternalIP, own, 30080, model.PolicyCluster)
		s.Created = time.Unix(int64(i+1), 0)
		c.SetService(s)
	}
	snapshot(t, c, 1)
	diff(t, "lost to another Service", model.Lost{
		place("second", "10.96.0.1", 80): "Service demo/first",
		place("second", own, 30080):      "Service demo/first",
	}, c.Lost())

	c.SetReserved([]netip.AddrPort{netip.MustParseAddrPort(own + ":30080")})
	snapshot(t, c, 2)
	diff(t, "lost to the API server", model.Lost{
		place("second", "10.96.0.1", 80): "Service demo/first",
		place("first", own, 30080):       "the API server",
		place("second", own, 30080):      "the API server",
	}, c.Lost())
}
