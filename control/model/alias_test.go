package model_test

import (
	"fmt"
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/model"
)

// TestAliases: every address has one of its family and of its own, which stays while others
// come and go.
func TestAliases(t *testing.T) {
	var own []netip.Addr
	for i := range 100 {
		own = append(own, netip.MustParseAddr(fmt.Sprintf("172.30.0.%d", i)), netip.MustParseAddr(fmt.Sprintf("fd30::%x", i)))
	}
	all := model.AliasesOf(own)
	seen, kept := map[netip.Addr]bool{}, 0
	for _, a := range own {
		alias := all[a]
		if alias.Is4() != a.Is4() || !model.IsAlias(alias) || seen[alias] {
			t.Errorf("alias of %s is %s: want one of its family, in the prefixes, and of its own", a, alias)
		}
		seen[alias] = true
		if model.AliasesOf([]netip.Addr{a})[a] == alias {
			kept++
		}
	}
	if alone := len(own) - kept; alone > 10 {
		t.Errorf("%d of %d addresses would have another alias alone", alone, len(own))
	}
	for _, edge := range []string{"169.254.76.0", "169.254.79.255"} {
		if seen[netip.MustParseAddr(edge)] {
			t.Errorf("%s is an alias, and is the edge of its prefix", edge)
		}
	}
}

// TestAliasesThatAreTaken: what the node has itself is nobody's alias, and of more addresses
// than there are aliases some have none.
func TestAliasesThatAreTaken(t *testing.T) {
	a := netip.MustParseAddr("172.30.0.11")
	alias := model.AliasesOf([]netip.Addr{a})[a]
	both := model.AliasesOf([]netip.Addr{a, alias})
	if both[a] == alias || both[alias] == alias || both[a] == both[alias] {
		t.Errorf("of %s and %s the aliases are %s and %s", a, alias, both[a], both[alias])
	}
	var own []netip.Addr
	for i := range 1100 {
		own = append(own, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	if n := len(model.AliasesOf(own)); n != 1022 {
		t.Errorf("%d of %d addresses have aliases, want 1022", n, len(own))
	}
}
