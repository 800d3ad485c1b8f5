package resolve

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
)

// special are prefixes that are no Service's on any network.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
	model.Alias6, // Alias4 is link-local
}

// Special finds what a range overlaps that can be no Service's: the unspecified, loopback,
// link-local and multicast addresses, and the aliases of the node's own. A range so wide that it holds half of all addresses
// overlaps some.
func Special(p netip.Prefix) (netip.Prefix, bool) {
	for _, s := range special {
		if s.Overlaps(p) {
			return s, true
		}
	}
	return netip.Prefix{}, false
}
