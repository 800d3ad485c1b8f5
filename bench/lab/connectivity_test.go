package lab_test

import (
	"fmt"
	"net/netip"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/lab/traffic"
)

// start builds a lab for one test and takes it away afterwards.
func start(t *testing.T, topology lab.Topology) *lab.Lab {
	t.Helper()
	testenv.Privileged(t)
	l, err := lab.Start(t.Context(), topology)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

const testPort = 8080

// Every host reaches every other one directly, over both families and both protocols, in
// every style and under every setting of rp_filter: what Lace later breaks or mends is
// then Lace's doing.
func TestEveryHostReachesEveryOther(t *testing.T) {
	for _, topology := range []lab.Topology{
		{RPFilter: 0, PodStyle: lab.PTP},
		{RPFilter: 1, PodStyle: lab.PTP},
		{RPFilter: 2, PodStyle: lab.Bridge},
		{RPFilter: 1, PodStyle: lab.Bridge},
	} {
		t.Run(fmt.Sprintf("%s/rp_filter=%d", topology.PodStyle, topology.RPFilter), func(t *testing.T) {
			l := start(t, topology)
			hosts := append(l.Pods(), l.Outside())
			for _, n := range l.Nodes() {
				hosts = append(hosts, n.Host)
			}
			for _, h := range hosts {
				if err := h.Listen(t.Context(), testPort); err != nil {
					t.Fatal(err)
				}
			}
			for _, from := range hosts {
				for _, to := range hosts {
					dialBothWays(t, from, to)
				}
			}
		})
	}
}

func dialBothWays(t *testing.T, from, to *lab.Host) {
	t.Helper()
	for _, family := range []int{4, 6} {
		for _, network := range []string{"tcp", "udp"} {
			r := traffic.Request{
				Network: network,
				To:      netip.AddrPortFrom(to.Addr(family), testPort),
				From:    netip.AddrPortFrom(from.Addr(family), 0),
				Bytes:   100,
			}
			a, err := from.Dial(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if a.Outcome != traffic.OK || a.Server != to.Name {
				t.Errorf("%s to %s over %s, IPv%d: %s", from.Name, to.Name, network, family, a)
			}
			if a.Client.Addr() != from.Addr(family) {
				t.Errorf("%s to %s over %s, IPv%d: seen as %s, want %s",
					from.Name, to.Name, network, family, a.Client.Addr(), from.Addr(family))
			}
		}
	}
}
