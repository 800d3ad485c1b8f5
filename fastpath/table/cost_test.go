package table_test

import (
	"math/rand/v2"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// TestLookupsDoNotGrow: how many slots a lookup looks at, for a frontend that is there and for
// one that is not, does not depend on how many Services there are. Counted, not timed; the
// mean over tables with hashes of their own, which linear probing at a load of one half at
// most puts below 1.5 and 2.5.
func TestLookupsDoNotGrow(t *testing.T) {
	for _, n := range []int{10, 1_000, 50_000} {
		tables := max(1, 20_000/n)
		var found, missed float64
		for range tables {
			c := &table.Contents{Generation: 1, Created: 1, Settings: table.DefaultSettings(), Ports: []table.Port{port(1, table.PortHost, "lace0")}}
			for i := range uint32(n) {
				c.Frontends = append(c.Frontends, table.Frontend{ID: i + 1, Addr: number(10<<24|96<<16, i), Port: 80, Protocol: packet.ProtocolTCP})
			}
			s := load(t, c)
			for range 1000 {
				a := number(10<<24|96<<16, rand.Uint32N(uint32(n)))
				found += float64(table.FrontendProbes(s, &a, packet.ProtocolTCP, 80))
				missed += float64(table.FrontendProbes(s, &a, packet.ProtocolTCP, 81))
			}
		}
		asked := float64(1000 * tables)
		if found/asked > 2 || missed/asked > 3 || found/asked < 1 {
			t.Errorf("%d Services: %.2f slots for one that is there, want 1 to 2, and %.2f for one that is not, want at most 3", n, found/asked, missed/asked)
		}
	}
}
