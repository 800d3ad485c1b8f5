package oracle

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Ask throws dice for a packet that somebody might send in a cluster.
func Ask(d Dice, c *Cluster) Packet {
	p := Packet{From: one(d, Pod, Node, Outside, Outside), Protocol: one(d, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)}
	p.To = netip.AddrPortFrom(called(d, c, p.From), number(d, c))
	if held := c.held(); len(held) > 0 && !rarely(d, 4) { // mostly something that is there
		l := one(d, held...)
		if p.From != Node || !slices.Contains(c.Own, l.at.Addr()) {
			p.To, p.Protocol = l.at, l.protocol
		}
	}
	p.Source = caller(d, c, p.From, p.To.Addr())
	return p
}

// number is a port that may or may not be a Service's.
func number(d Dice, c *Cluster) uint16 {
	pool := []uint16{80, 81, 53, 80}
	for _, n := range c.place.nodePorts {
		pool = append(pool, uint16(n))
	}
	return one(d, append(pool, 99)...)
}

// called is an address that may or may not be a Service's. What the node sends to its own
// addresses does not leave it.
func called(d Dice, c *Cluster, from Origin) netip.Addr {
	pool := slices.Concat(c.place.own, c.place.elsewhere, otherNodes[:2], podsThere[:2])
	if from != Node {
		pool = slices.Concat(pool, c.Own, c.Pods[2:4])
	}
	return one(d, pool...)
}

// caller is a client of the family of the address that is called.
func caller(d Dice, c *Cluster, from Origin, to netip.Addr) netip.Addr {
	var pool []netip.Addr
	switch from {
	case Pod:
		pool = c.Pods
	case Node:
		pool = c.Own
	case Outside:
		pool = slices.Concat(otherNodes, podsThere, beyond)
	}
	pool = slices.DeleteFunc(slices.Clone(pool), func(a netip.Addr) bool { return a.Is4() != to.Is4() || a == to })
	return one(d, pool...)
}
