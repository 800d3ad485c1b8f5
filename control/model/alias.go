package model

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"
)

// Alias4 and Alias6 hold the aliases of a node's own addresses. They mean something inside
// one node only, where they are routed to the trunk, and are never on a wire. 169.254.76.0/22
// is link-local; fd4c:6163:65::/48 is a unique local prefix (RFC 4193) that spells the
// project's name.
var (
	Alias4 = netip.MustParsePrefix("169.254.76.0/22")
	Alias6 = netip.MustParsePrefix("fd4c:6163:65:76::/64")
)

// IsAlias reports whether an address may be an alias.
func IsAlias(a netip.Addr) bool { return Alias4.Contains(a) || Alias6.Contains(a) }

// AliasesOf gives every address of a node an alias of its family: the same one as long as
// the node has the address, on every node and after every restart. Which one follows from
// the address; of two that would get the same one the larger gets the next. Addresses beyond
// what Alias4 has room for get none.
func AliasesOf(own []netip.Addr) map[netip.Addr]netip.Addr {
	own = slices.Compact(slices.SortedFunc(slices.Values(own), netip.Addr.Compare))
	out, taken := make(map[netip.Addr]netip.Addr, len(own)), map[netip.Addr]bool{}
	for _, a := range own {
		taken[a] = true // what the node has is no alias
	}
	for _, a := range own {
		h := fnv.New64a()
		h.Write(a.AsSlice())
		for i := range rooms4 {
			if alias := aliasAt(a.Is4(), h.Sum64()+uint64(i)); !taken[alias] {
				out[a], taken[alias] = alias, true
				break
			}
		}
	}
	return out
}

// rooms4 is how many aliases Alias4 has room for: neither its first nor its last address is
// one.
const rooms4 = 1<<10 - 2

func aliasAt(is4 bool, n uint64) netip.Addr {
	if is4 {
		b := Alias4.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+1+uint32(n%rooms4))
		return netip.AddrFrom4(b)
	}
	b := Alias6.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], n)
	return netip.AddrFrom16(b)
}
