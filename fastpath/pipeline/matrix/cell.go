package matrix

import (
	"fmt"
	"slices"
	"strings"
)

// Cell is one combination of what a packet's fate depends on.
type Cell struct {
	Family   string // v4, v6
	Protocol string // tcp, udp, sctp, icmp-error
	Frontend string // cluster (a ClusterIP), external (an externalIP or load balancer's address), nodeport
	Target   string // served, unknown-port, no-endpoint
	Client   string // pod, node, outside
	Backend  string // itself, pod, node (host network), remote (a pod of another node), nobody
	Source   string // kept, snat
	Lane     string // lane-off, lane-on
	Delivery string // direct, stack
}

// dimensions lists the values of each field of a Cell, in the order of its String.
var dimensions = [...]struct {
	name   string
	values []string
	field  func(*Cell) *string
}{
	{"family", []string{"v4", "v6"}, func(c *Cell) *string { return &c.Family }},
	{"protocol", []string{"tcp", "udp", "sctp", "icmp-error"}, func(c *Cell) *string { return &c.Protocol }},
	{"frontend", []string{"cluster", "external", "nodeport"}, func(c *Cell) *string { return &c.Frontend }},
	{"target", []string{"served", "unknown-port", "no-endpoint"}, func(c *Cell) *string { return &c.Target }},
	{"client", []string{"pod", "node", "outside"}, func(c *Cell) *string { return &c.Client }},
	{"backend", []string{"itself", "pod", "node", "remote", "nobody"}, func(c *Cell) *string { return &c.Backend }},
	{"source", []string{"kept", "snat"}, func(c *Cell) *string { return &c.Source }},
	{"lane", []string{"lane-off", "lane-on"}, func(c *Cell) *string { return &c.Lane }},
	{"delivery", []string{"direct", "stack"}, func(c *Cell) *string { return &c.Delivery }},
}

// Cells is every combination, possible or not.
func Cells() []Cell {
	all := []Cell{{}}
	for _, d := range dimensions {
		var next []Cell
		for _, c := range all {
			for _, v := range d.values {
				*d.field(&c) = v
				next = append(next, c)
			}
		}
		all = next
	}
	return all
}

func (c Cell) String() string {
	return strings.Join([]string{c.Family, c.Protocol, c.Frontend, c.Target, c.Client + ">" + c.Backend, c.Source, c.Lane, c.Delivery}, " ")
}

// parseCells reads what String writes; the family may be a list, joined by commas.
func parseCells(s string) ([]Cell, error) {
	f := strings.Fields(strings.Replace(s, ">", " ", 1))
	if len(f) != len(dimensions) {
		return nil, fmt.Errorf("%q has %d words, a cell has %d", s, len(f), len(dimensions))
	}
	var cells []Cell
	for _, family := range strings.Split(f[0], ",") {
		f[0] = family
		var c Cell
		for i, d := range dimensions {
			if !slices.Contains(d.values, f[i]) {
				return nil, fmt.Errorf("%q is no %s", f[i], d.name)
			}
			*d.field(&c) = f[i]
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// Rule says which cells there can be no packet for, and why.
type Rule struct {
	Cells string // in words
	Why   string
	holds func(*Cell) bool
}

// Rules are tried in turn; a cell that none of them holds is possible.
var Rules = []Rule{
	{"a backend where none is reached, or none where one is", "a refused packet reaches nobody, a served one somebody",
		func(c *Cell) bool { return (c.Backend == "nobody") != (c.Target != "served") }},
	{"an outside client that is its own backend", "no endpoint of a Service lies outside the cluster",
		func(c *Cell) bool { return c.Client == "outside" && c.Backend == "itself" }},
	{"the node as client of its host network", "that is the client itself, another cell",
		func(c *Cell) bool { return c.Client == "node" && c.Backend == "node" }},
	{"the node as client of a node port", "what a node sends to its own address stays on its loopback device; its sockets are sent to an alias instead, which is as a ClusterIP to them",
		func(c *Cell) bool { return c.Client == "node" && c.Frontend == "nodeport" }},
	{"an unknown port of the node", "of the node's address only its node ports are Lace's; the rest is the node's own business",
		func(c *Cell) bool { return c.Frontend == "nodeport" && c.Target == "unknown-port" }},
	{"a refused packet with another source, in the lane, or by the stack", "what is refused is neither translated nor registered nor delivered",
		func(c *Cell) bool {
			return c.Target != "served" && (c.Source == "snat" || c.Lane == "lane-on" || c.Delivery == "stack")
		}},
	{"a client that is its own backend, or an outside one with a backend on another node, keeps its address", "its answer would not come back by this node",
		func(c *Cell) bool { return c.Source == "kept" && needsSource(c) }},
	{"the node's stack routes what the node sends, or what has an address of the node as its source", "the stack refuses its own addresses from outside",
		func(c *Cell) bool { return c.Delivery == "stack" && (c.Client == "node" || needsSource(c)) }},
}

func needsSource(c *Cell) bool {
	return c.Backend == "itself" || c.Client == "outside" && c.Backend == "remote"
}

// Impossible is the first rule that says that there is no such packet, or nil.
func Impossible(c Cell) *Rule {
	for i := range Rules {
		if Rules[i].holds(&c) {
			return &Rules[i]
		}
	}
	return nil
}
