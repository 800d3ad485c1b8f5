package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"
)

// uplinkName is the device of a node, and of the outside client, towards the wire.
const uplinkName = "eth0"

// podBridge is the bridge of a node in the Bridge style.
const podBridge = "cni0"

// spawn starts the processes of every host, all at once.
func (l *Lab) spawn() error {
	type start struct {
		name  string
		spec  cellSpec
		place func(*cell)
	}
	starts := []start{
		{name: wireName, place: func(c *cell) { l.wire = c }},
		{name: OutsideName, place: func(c *cell) {
			l.outside = newHost(OutsideName, "", wireAddresses(outsideHost), c)
		}},
	}
	for _, n := range l.topology.cast() {
		stateDir := l.folder.stateDir(n.name)
		starts = append(starts, start{n.name, cellSpec{StateDir: stateDir}, func(c *cell) {
			l.nodes[n.name] = &Node{Host: newHost(n.name, n.name, n.wire(), c), lab: l, spec: n, stateDir: stateDir}
		}})
		for k, pod := range n.pods {
			starts = append(starts, start{pod, cellSpec{}, func(c *cell) {
				l.pods[pod] = newHost(pod, n.name, n.pod(podHost(k)), c)
			}})
		}
	}
	var all errgroup.Group
	for _, s := range starts {
		all.Go(func() error {
			c, err := newCell(l.nursery, s.name, s.spec)
			l.mu.Lock()
			defer l.mu.Unlock()
			if c != nil {
				l.cells = append(l.cells, c)
				s.place(c)
			}
			return err
		})
	}
	return all.Wait()
}

func newHost(name, node string, a addresses, c *cell) *Host {
	return &Host{Name: name, Node: node, Addr4: a.v4.Addr(), Addr6: a.v6.Addr(), cell: c}
}

// connect lays every link, address and route.
func (l *Lab) connect(ctx context.Context) error {
	if err := bridge(l.wire, "br0", mac(macBridge, 0, 0)); err != nil {
		return err
	}
	if err := l.outside.SetSysctls(ctx, quiet...); err != nil {
		return err
	}
	if err := l.plug(l.outside.cell, OutsideName, wireAddresses(outsideHost), outsideHost); err != nil {
		return err
	}
	for _, n := range l.topology.cast() {
		if err := l.connectNode(ctx, n); err != nil {
			return err
		}
	}
	for _, n := range l.topology.cast() {
		if err := l.routeNode(n); err != nil {
			return err
		}
	}
	return l.routeOutside()
}

// plug connects a cell to the wire.
func (l *Lab) plug(c *cell, port string, a addresses, host int) error {
	err := veth(c, uplinkName, mac(macWire, 0, host), l.wire, port, mac(macWire, 1, host))
	if err != nil {
		return err
	}
	if err := l.wire.enslave(port, "br0"); err != nil {
		return err
	}
	if err := l.wire.up(port); err != nil {
		return err
	}
	if err := c.up(uplinkName); err != nil {
		return err
	}
	return c.address(uplinkName, a.both()...)
}

func (l *Lab) connectNode(ctx context.Context, n *nodeSpec) error {
	node := l.nodes[n.name]
	if err := node.SetSysctls(ctx, nodeSysctls(l.topology.RPFilter)...); err != nil {
		return err
	}
	if err := l.plug(node.cell, n.name, n.wire(), 10+n.index); err != nil {
		return err
	}
	if l.topology.PodStyle == Bridge {
		if err := bridge(node.cell, podBridge, mac(macBridge, n.index, 0)); err != nil {
			return err
		}
		if err := node.cell.address(podBridge, n.gateway().both()...); err != nil {
			return err
		}
	}
	for k, pod := range n.pods {
		if err := l.connectPod(ctx, n, l.pods[pod], podHost(k)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) connectPod(ctx context.Context, n *nodeSpec, pod *Host, host int) error {
	if err := pod.SetSysctls(ctx, quiet...); err != nil {
		return err
	}
	node, device := l.nodes[n.name].cell, pod.Name
	err := veth(node, device, mac(macVeth, n.index, host), pod.cell, "eth0", mac(macPod, n.index, host))
	if err != nil {
		return err
	}
	if err := pod.cell.up("eth0"); err != nil {
		return err
	}
	if l.topology.PodStyle == Bridge {
		return l.bridgePod(n, pod.cell, device, n.pod(host))
	}
	return l.routePod(n, pod.cell, device, n.pod(host).single())
}

// bridgePod puts the node's end into the bridge; the pod sees its node's pods on-link.
func (l *Lab) bridgePod(n *nodeSpec, pod *cell, device string, a addresses) error {
	node := l.nodes[n.name].cell
	if err := node.enslave(device, podBridge); err != nil {
		return err
	}
	if err := node.up(device); err != nil {
		return err
	}
	if err := pod.address("eth0", a.both()...); err != nil {
		return err
	}
	return pod.defaultRoutes("eth0", n.gateway())
}

// routePod gives the node's end the gateway address and a host route, and the pod nothing
// but a default route: whatever it sends is routed by the node.
func (l *Lab) routePod(n *nodeSpec, pod *cell, device string, a addresses) error {
	node, gateway := l.nodes[n.name].cell, n.gateway().single()
	if err := node.up(device); err != nil {
		return err
	}
	if err := node.address(device, gateway.both()...); err != nil {
		return err
	}
	for _, p := range a.both() {
		if err := node.route(p, netip.Addr{}, device); err != nil {
			return err
		}
	}
	if err := pod.address("eth0", a.both()...); err != nil {
		return err
	}
	for _, p := range gateway.both() {
		if err := pod.route(p, netip.Addr{}, "eth0"); err != nil {
			return err
		}
	}
	return pod.defaultRoutes("eth0", gateway)
}

var defaults = parse("0.0.0.0/0", "::/0")

func (c *cell) defaultRoutes(device string, gateway addresses) error {
	if err := c.route(defaults.v4, gateway.v4.Addr(), device); err != nil {
		return err
	}
	return c.route(defaults.v6, gateway.v6.Addr(), device)
}

// routeNode gives a node the routes to the other nodes' pods, and everything else to the
// outside host, which plays the router of the wire.
func (l *Lab) routeNode(n *nodeSpec) error {
	node := l.nodes[n.name].cell
	for _, other := range l.topology.cast() {
		if other != n {
			if err := node.routePods(other); err != nil {
				return err
			}
		}
	}
	return node.defaultRoutes(uplinkName, wireAddresses(outsideHost))
}

// routePods sends a node's pod prefixes to that node.
func (c *cell) routePods(n *nodeSpec) error {
	prefixes, via := n.gateway().masked(), n.wire()
	if err := c.route(prefixes.v4, via.v4.Addr(), uplinkName); err != nil {
		return err
	}
	return c.route(prefixes.v6, via.v6.Addr(), uplinkName)
}

// routeOutside lets the outside client reach pods directly and services through n1.
func (l *Lab) routeOutside() error {
	outside := l.outside.cell
	for _, n := range l.topology.cast() {
		if err := outside.routePods(n); err != nil {
			return err
		}
	}
	first := nodeSpecs[0].wire()
	for _, p := range slices.Concat(ServiceRanges, ExternalRanges) {
		via := first.v4.Addr()
		if p.Addr().Is6() {
			via = first.v6.Addr()
		}
		if err := outside.route(p, via, uplinkName); err != nil {
			return err
		}
	}
	return nil
}

// quiet makes IPv6 addresses usable at once: no duplicate address detection, no router
// solicitations.
var quiet = []Sysctl{
	{"net.ipv6.conf.all.disable_ipv6", "0"},
	{"net.ipv6.conf.default.disable_ipv6", "0"},
	{"net.ipv6.conf.all.accept_dad", "0"},
	{"net.ipv6.conf.default.accept_dad", "0"},
	{"net.ipv6.conf.all.accept_ra", "0"},
	{"net.ipv6.conf.default.accept_ra", "0"},
	{"net.ipv6.conf.default.router_solicitations", "0"},
}

// nodeSysctls are those of a node: it forwards, and filters by return path as told. The
// kernel takes the stricter of "all" and the device, so both are set; "default" serves
// devices that come later.
func nodeSysctls(rpFilter int) []Sysctl {
	rp := fmt.Sprint(rpFilter)
	return append(append([]Sysctl{}, quiet...),
		Sysctl{"net.ipv4.ip_forward", "1"},
		Sysctl{"net.ipv6.conf.all.forwarding", "1"},
		Sysctl{"net.ipv6.conf.default.forwarding", "1"},
		Sysctl{"net.ipv4.conf.all.rp_filter", rp},
		Sysctl{"net.ipv4.conf.default.rp_filter", rp},
		Sysctl{"net.ipv4.conf.lo.rp_filter", rp},
	)
}
