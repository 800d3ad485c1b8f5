package netdev_test

import (
	"errors"
	"net/netip"
	"testing"

	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// TestRouteToAnAddress: the kernel and the fake agree on which device a packet leaves by, the
// longest prefix first, and on none.
func TestRouteToAnAddress(t *testing.T) {
	space, other := netdevtest.New(t), netdevtest.New(t)
	space.Veth("eth0", other, "far0")
	space.Veth("eth1", other, "far1")
	kernel, fake := space.Stack(), netdev.NewFake()
	links, err := kernel.Links()
	if err != nil {
		t.Fatal(err)
	}
	device := map[string]int{}
	for _, l := range links {
		if l.Name == "eth0" || l.Name == "eth1" {
			device[l.Name] = l.Index
		}
	}
	made := map[string]int{} // of the fake
	for _, name := range []string{"eth0", "eth1"} {
		l, err := fake.AddLink(netdev.Link{Name: name, Up: true, Ethernet: true, MTU: 1500})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = l.Index
	}
	for _, s := range []struct {
		stack   netdev.Stack
		devices map[string]int
	}{{kernel, device}, {fake, made}} {
		for prefix, name := range map[string]string{"10.0.0.0/8": "eth0", "10.96.0.0/16": "eth1", "fd00::/16": "eth0", "fd00:10::/32": "eth1"} {
			r := netdev.Route{Destination: netip.MustParsePrefix(prefix), Device: s.devices[name], Scope: netdev.ScopeLink}
			if err := s.stack.ReplaceRoute(r); err != nil {
				t.Fatal(err)
			}
		}
		blocked := netdev.Route{Destination: netip.MustParsePrefix("10.99.0.0/16"), Type: netdev.Unreachable}
		if err := s.stack.ReplaceRoute(blocked); err != nil {
			t.Fatal(err)
		}
		for to, name := range map[string]string{"10.1.1.1": "eth0", "10.96.0.10": "eth1", "fd00:1::1": "eth0", "fd00:10::1": "eth1", "10.99.0.1": "", "192.0.2.1": "", "2001:db8::1": ""} {
			r, err := s.stack.RouteTo(netip.MustParseAddr(to))
			switch {
			case name == "" && !errors.Is(err, netdev.ErrNotFound):
				t.Errorf("%T: route to %s is %v, %v; want none", s.stack, to, r, err)
			case name != "" && (err != nil || r.Device != s.devices[name]):
				t.Errorf("%T: route to %s is %v, %v; want device %s (%d)", s.stack, to, r, err, name, s.devices[name])
			}
		}
	}
}
