package resolve

import (
	"fmt"
	"net/netip"

	"lace-cni.io/lace/control/model"
)

// parse reads an address that packets may be sent to. On failure it says what is wrong
// with it, as the end of a sentence.
func parse(s string) (netip.Addr, string) {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return netip.Addr{}, "is no IP address"
	case a.Zone() != "":
		return netip.Addr{}, "has a zone; write the address without %"
	case a.Is4In6():
		return netip.Addr{}, fmt.Sprintf("is an IPv4 address in IPv6 form; write %s", a.Unmap())
	case a.IsUnspecified():
		return netip.Addr{}, "is the unspecified address"
	case a.IsLoopback():
		return netip.Addr{}, "is a loopback address"
	case model.Alias6.Contains(a):
		return netip.Addr{}, fmt.Sprintf("is in %s, where Lace has aliases of the node's own addresses", model.Alias6)
	case a.IsLinkLocalUnicast():
		return netip.Addr{}, "is a link-local address"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return netip.Addr{}, "is a multicast or broadcast address"
	}
	return a, ""
}

// family is 4 or 6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

func familyName(f int) string { return fmt.Sprintf("IPv%d", f) }
