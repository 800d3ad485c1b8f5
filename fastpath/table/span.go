package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"lace-cni.io/lace/fastpath/packet"
)

// span is a stretch of the address space of one network, from Start up to the next
// span, whose longest matching prefix leads to Port; 0: there is none.
type span struct {
	Start   packet.Addr
	Network packet.NetworkID
	Port    uint16
	_       [2]byte
}

// after reports whether the span begins behind an address given as two big-endian words.
func (s *span) after(net packet.NetworkID, hi, lo uint64) bool {
	if s.Network != net {
		return s.Network > net
	}
	if h := binary.BigEndian.Uint64(s.Start[:8]); h != hi {
		return h > hi
	}
	return binary.BigEndian.Uint64(s.Start[8:]) > lo
}

// mapped is the IPv4 part of the address space, where only IPv4 prefixes count.
var mapped = packet.Addr4([4]byte{})

const mappedBits = 96

// last is the last address of a prefix.
func (r *Route) last() packet.Addr {
	a := r.Prefix
	for i := int(r.Bits); i < 128; i++ {
		a[i/8] |= 0x80 >> (i % 8)
	}
	return a
}

// compareRoutes puts a prefix behind those that hold it.
func compareRoutes(a, b Route) int {
	return cmp.Or(cmp.Compare(a.Network, b.Network), bytes.Compare(a.Prefix[:], b.Prefix[:]),
		cmp.Compare(a.Bits, b.Bits), cmp.Compare(a.Port, b.Port))
}

// spansOf cuts the address space along the prefixes of routes. An IPv6 prefix does not
// reach into the IPv4 part, however short it is. A prefix that is none is an error, and so are two
// routes for one prefix.
func spansOf(routes []Route) ([]span, error) {
	for i := range routes {
		if err := routes[i].check(); err != nil {
			return nil, fmt.Errorf("%v: %w", &routes[i], err)
		}
	}
	sorted := slices.Clone(routes)
	slices.SortFunc(sorted, compareRoutes)
	for i := 1; i < len(sorted); i++ {
		a, b := &sorted[i-1], &sorted[i]
		if a.Network == b.Network && a.Prefix == b.Prefix && a.Bits == b.Bits {
			return nil, fmt.Errorf("%v is there twice, through port %d and port %d", b, a.Port, b.Port)
		}
	}
	for _, net := range networksOf(sorted) {
		sorted = append(sorted, Route{Network: net, Prefix: mapped, Bits: mappedBits})
	}
	slices.SortFunc(sorted, compareRoutes)
	var cut cutter
	for i := range sorted {
		cut.open(&sorted[i])
	}
	cut.closeAll()
	return cut.merged(), nil
}

// networksOf lists the networks of sorted routes once each.
func networksOf(sorted []Route) (nets []packet.NetworkID) {
	for i := range sorted {
		if i == 0 || sorted[i].Network != sorted[i-1].Network {
			nets = append(nets, sorted[i].Network)
		}
	}
	return nets
}

// cutter sweeps over sorted prefixes and notes where the longest match changes.
type cutter struct {
	spans []span
	held  []*Route // prefixes around the present address, the longest last
}

// from notes that port is in force from start on.
func (c *cutter) from(net packet.NetworkID, start packet.Addr, port uint16) {
	if n := len(c.spans); n > 0 && c.spans[n-1].Network == net && c.spans[n-1].Start == start {
		c.spans[n-1].Port = port
		return
	}
	c.spans = append(c.spans, span{Network: net, Start: start, Port: port})
}

func (c *cutter) open(r *Route) {
	for n := len(c.held); n > 0; n = len(c.held) {
		top := c.held[n-1]
		end := top.last()
		if top.Network == r.Network && bytes.Compare(end[:], r.Prefix[:]) >= 0 {
			break
		}
		c.close()
	}
	if len(c.held) == 0 && (len(c.spans) == 0 || c.spans[len(c.spans)-1].Network != r.Network) {
		c.from(r.Network, packet.Addr{}, 0)
	}
	c.from(r.Network, r.Prefix, r.Port)
	c.held = append(c.held, r)
}

// close ends the longest prefix; the one around it is in force again.
func (c *cutter) close() {
	n := len(c.held) - 1
	top := c.held[n]
	c.held = c.held[:n]
	next, ok := after(top.last())
	if !ok {
		return
	}
	var port uint16
	if n > 0 {
		port = c.held[n-1].Port
	}
	c.from(top.Network, next, port)
}

func (c *cutter) closeAll() {
	for len(c.held) > 0 {
		c.close()
	}
}

// merged joins neighbours that lead to the same port.
func (c *cutter) merged() []span {
	return slices.CompactFunc(c.spans, func(a, b span) bool { return a.Network == b.Network && a.Port == b.Port })
}

// after is the address that follows a, false behind the last.
func after(a packet.Addr) (packet.Addr, bool) {
	for i := len(a) - 1; i >= 0; i-- {
		a[i]++
		if a[i] != 0 {
			return a, true
		}
	}
	return a, false
}
