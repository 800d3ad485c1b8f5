package compile_test

import (
	"fmt"
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// TestBalancersAddressThatIsSomebodys: of an address that is known to be somebody's a
// balancer gives the port, and the whole of it when they let go.
func TestBalancersAddressThatIsSomebodys(t *testing.T) {
	const addr = "203.0.113.1"
	routed := func(on bool) model.Attachments {
		a := twoPods()
		if on {
			a.Routes = append(a.Routes, model.Route{Prefix: netip.MustParsePrefix(addr + "/32"), Port: 4})
		}
		return a
	}
	for _, tc := range []struct {
		name string
		set  func(c *compile.Compiler, on bool)
	}{
		{"a node's", func(c *compile.Compiler, on bool) { c.SetNodes(map[netip.Addr]bool{netip.MustParseAddr(addr): on}) }},
		{"an endpoint's", func(c *compile.Compiler, on bool) {
			c.DeleteService(model.Name{Namespace: "demo", Name: "other"})
			if on {
				c.SetService(service(t, "other", "10.96.0.11", addr+":9000"))
			}
		}},
		{"one with a host route of somebody else", func(c *compile.Compiler, on bool) { c.SetAttachments(routed(on)) }},
		{"an API server's", func(c *compile.Compiler, on bool) {
			c.SetReserved(map[bool][]netip.AddrPort{true: {netip.MustParseAddrPort(addr + ":6443")}}[on])
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compile.New(nil)
			c.SetAttachments(routed(false))
			c.SetService(reachable(service(t, "web", "10.96.0.10", "10.244.1.5:1"), model.LoadBalancer, addr, 80, 0))
			for i, on := range []bool{false, true, false} {
				tc.set(c, on)
				s, problems := snapshotProblems(t, c, uint64(i+1))
				_, narrow := vipsOf(s)
				wantNarrow, wantRouted := []string(nil), "["+addr+"]"
				if on {
					wantNarrow, wantRouted = []string{addr + ":80"}, "[]"
				}
				diff(t, "narrow", wantNarrow, narrow)
				diff(t, "routed", wantRouted, fmt.Sprint(c.External()))
				diff(t, "problems", []string(nil), problemsOf(problems))
			}
		})
	}
}

// TestAPIServersAreNobodys: no kind of address takes what an API server listens on, and the
// Service has all its others.
func TestAPIServersAreNobodys(t *testing.T) {
	server := []netip.AddrPort{netip.MustParseAddrPort("172.30.0.50:6443")}
	for kind, field := range map[model.FrontendKind]string{
		model.ClusterIP: "spec.clusterIPs", model.ExternalIP: "spec.externalIPs", model.LoadBalancer: "status.loadBalancer.ingress",
	} {
		web := reachable(service(t, "web", "10.96.0.10", "10.244.1.5:1"), kind, "172.30.0.50", 6443, 0)
		c := compile.New(nil)
		c.SetReserved(server)
		c.SetService(web)
		s, problems := snapshotProblems(t, c, 1)
		diff(t, "frontends", map[string]string{"10.96.0.10:80": "10.244.1.5:1"}, frontendsOf(s))
		diff(t, "problems", []string{"Service demo/web AddressOfAPIServer"}, problemsOf(problems))
		if len(problems) == 1 && problems[0].Field != field {
			t.Errorf("%s: field %q, want %q", kind, problems[0].Field, field)
		}
		c.SetReserved(nil)
		if s, problems := snapshotProblems(t, c, 2); len(s.Frontends()) != 2 || len(problems) != 0 {
			t.Errorf("%s: the API server is elsewhere: %v, %v; want both frontends", kind, frontendsOf(s), problems)
		}
	}
}
