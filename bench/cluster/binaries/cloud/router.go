package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
)

// router holds the clients' routes to balancers' addresses.
type router struct {
	netns  string
	source [2]netip.Addr             // of the clients, by family
	routes map[netip.Addr]netip.Addr // balancer's address: node's
}

// family is 0 for IPv4, 1 for IPv6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// sync makes the routes what is wanted.
func (r *router) sync(want map[netip.Addr]netip.Addr) error {
	var errs []error
	for to, via := range want {
		if r.routes[to] != via {
			errs = append(errs, r.set("replace", to, "via", via.String(), "src", r.source[family(to)].String()))
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

func (r *router) set(verb string, to netip.Addr, rest ...string) error {
	args := append([]string{"-n", r.netns, [2]string{"-4", "-6"}[family(to)], "route", verb, to.String()}, rest...)
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}
