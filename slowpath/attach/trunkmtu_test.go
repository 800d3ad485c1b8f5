package attach_test

import (
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/xdp"
)

// TestTheAdviceIsPossible: the trunk is to be raised only to what it can have, and the device
// to be lowered to what the trunk takes.
func TestTheAdviceIsPossible(t *testing.T) {
	if attach.MostTrunkMTU != xdp.MaxTrunkMTU {
		t.Errorf("the largest trunk is said to have %d, and has %d", attach.MostTrunkMTU, xdp.MaxTrunkMTU)
	}
	for _, c := range []struct {
		mtu, trunk  int
		advises, no string
	}{
		{9000, 3498, "device's MTU to 3498", "--trunk-mtu"},
		{9000, 3506, "device's MTU to 3506", "--trunk-mtu"},
		{3507, 1500, "device's MTU to 1500", "--trunk-mtu"},
		{3506, 1500, "--trunk-mtu 3506", "9000"},
		{1500, 1400, "device's MTU to 1400, or raise the trunk's: lace-fastpath --trunk-mtu 1500", "3506"},
	} {
		what, do := attach.TooLong(c.mtu, c.trunk)
		if !strings.Contains(do, c.advises) || strings.Contains(do, c.no) {
			t.Errorf("MTU %d, trunk %d: %q, want %q in it and no %q", c.mtu, c.trunk, do, c.advises, c.no)
		}
		if !strings.Contains(what, "are told") {
			t.Errorf("MTU %d, trunk %d: %q", c.mtu, c.trunk, what)
		}
	}
}
