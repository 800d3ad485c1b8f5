package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
)

// router holds the clients' routes to balancers' addresses.
type router struct {
	netns  string
	source [2]netip.Addr               // of the clients, by family
	routes map[netip.Addr][]netip.Addr // balancer's address: nodes'
}

// family is 0 for IPv4, 1 for IPv6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// sync makes the routes what is wanted.
func (r *router) sync(want map[netip.Addr][]netip.Addr) error {
	var errs []error
	for to, via := range want {
		if !slices.Equal(r.routes[to], via) {
			errs = append(errs, r.set("replace", to, append([]string{"src", r.source[family(to)].String()}, hops(via)...)...))
			r.routes[to] = via
		}
	}
	for to := range r.routes {
		if _, ok := want[to]; !ok {
			errs = append(errs, r.set("del", to))
			delete(r.routes, to)
		}
	}
	return errors.Join(errs...)
}

// hops are the arguments for a route by way of any of the nodes.
func hops(via []netip.Addr) (args []string) {
	for _, a := range via {
		if len(via) > 1 {
			args = append(args, "nexthop")
		}
		args = append(args, "via", a.String())
	}
	return args
}

func (r *router) set(verb string, to netip.Addr, rest ...string) error {
	args := append([]string{"-n", r.netns, [2]string{"-4", "-6"}[family(to)], "route", verb, to.String()}, rest...)
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}
