package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/load"
)

// node is what carries Services on a node.
type node interface {
	// start starts it and returns; packets follow later.
	start(context.Context) error
	// complete says what of so many Services is not in force; nil: all are.
	complete(ctx context.Context, services int) error
	// clear ends it and removes all that it has left.
	clear(context.Context) error
	// control is the program that follows the API, programs all there are.
	control() string
	programs() []string
}

// side is a node with a client, a pod that answers at two addresses, and what carries
// Services between them.
type side struct {
	name    string
	node    *lab.Node
	runs    node
	client  *load.Space
	server  *load.Space
	host    *load.Space
	pods    [2]string        // of client and server: also the node's devices towards them
	from    netip.Addr       // the client's address
	at      [2]netip.Addr    // the server's addresses
	probe   netip.AddrPort   // Service whose one endpoint changes between these
	flooded netip.AddrPort   // Service of the flood
	first   []netip.AddrPort // Services that answer always, spread over all
	now     int              // which of at the probe has
	closers []func() error
}

// secondHost is the last part of the server's second address.
const secondHost = 200

func newSide(c *cluster.Cluster, name string, n *lab.Node, client, server string) (s *side, err error) {
	s = &side{name: name, node: n, pods: [2]string{client, server}, from: c.Pod(client).Addr4}
	for _, open := range []struct {
		into **load.Space
		name string
		pid  int
	}{{&s.client, client, c.Pod(client).PID()}, {&s.server, server, c.Pod(server).PID()}, {&s.host, n.Name, n.PID()}} {
		if *open.into, err = load.OpenSpace(open.name, open.pid); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.closers = append(s.closers, (*open.into).Close)
	}
	own := c.Pod(server).Addr4
	second := own.As4()
	second[3] = secondHost
	s.at = [2]netip.Addr{own, netip.AddrFrom4(second)}
	if err := s.addAddress(s.at[1]); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, at := range s.at {
		end, err := answer(s.server, netip.AddrPortFrom(at, targetPort))
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.closers = append(s.closers, end)
	}
	return s, nil
}

// Close lets go of everything but the lab.
func (s *side) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// addAddress gives the server another address, and the node the way there.
func (s *side) addAddress(a netip.Addr) error {
	pod, err := s.server.Links().LinkByName("eth0")
	if err != nil {
		return err
	}
	way, err := s.host.Index(s.pods[1])
	if err != nil {
		return err
	}
	to := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
	if err := s.server.Links().AddrAdd(pod, &netlink.Addr{IPNet: to}); err != nil {
		return fmt.Errorf("address %s: %w", a, err)
	}
	if err := s.host.Links().RouteAdd(&netlink.Route{LinkIndex: way, Dst: to, Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("route to %s: %w", a, err)
	}
	return nil
}

func (s *side) start(ctx context.Context) error { return s.runs.start(ctx) }
func (s *side) clear(ctx context.Context) error { return s.runs.clear(ctx) }
