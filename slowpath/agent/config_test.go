package agent

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/source"
)

// silence is a source that has nothing.
type silence struct{}

func (silence) Run(ctx context.Context, sink source.Sink) error {
	sink.Synced()
	<-ctx.Done()
	return nil
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	prefixes := func(s ...string) (out []netip.Prefix) {
		for _, p := range s {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	cases := []struct {
		name string
		c    Config
		says string
	}{
		{"a node without a name", Config{Source: silence{}}, "--node-name"},
		{"no source", Config{NodeName: "n1"}, "--source-dir"},
		{"everything as a service range", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("0.0.0.0/0")}, "0.0.0.0/0"},
		{"half of everything", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("0.0.0.0/1")}, "--service-cidrs"},
		{"loopback", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("127.0.0.0/8")}, "127.0.0.0/8"},
		{"multicast", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("ff0e::/16")}, "ff00::/8"},
		{"link-local", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("fe80::/64")}, "fe80::/10"},
		{"no prefix", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: []netip.Prefix{{}}}, "service range"},
		{"two ranges that overlap", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("10.96.0.0/16", "10.0.0.0/8")}, "overlap"},
		{"a v4-mapped range", Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("::ffff:10.96.0.0/112")}, "service range"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.c.complete(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error with %q", err, c.says)
			}
		})
	}
	good := Config{NodeName: "n1", Source: silence{}, ServiceCIDRs: prefixes("10.96.0.0/16", "fd00:10:96::/112")}
	if err := good.complete(); err != nil || good.StateDir != DefaultStateDir || good.BPFFS != DefaultBPFFS || good.Log == nil {
		t.Errorf("%+v, %v: want the defaults", good, err)
	}
}
