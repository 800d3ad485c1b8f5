package table_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func TestPermits(t *testing.T) {
	s := load(t, small())
	for _, c := range []struct {
		name   string
		id     uint32
		client string
		want   bool
	}{
		{"a frontend that is not restricted takes everybody", 11, "192.0.2.1", true},
		{"the first address of a range", 16, "10.244.0.0", true},
		{"the last address of a range", 16, "10.244.255.255", true},
		{"one before a range", 16, "10.243.255.255", false},
		{"one behind a range", 16, "10.245.0.0", false},
		{"a range of one address", 16, "172.30.0.100", true},
		{"its neighbour below", 16, "172.30.0.99", false},
		{"its neighbour above", 16, "172.30.0.101", false},
		{"IPv6 inside", 17, "fd30::80", true},
		{"IPv6 outside", 17, "fd30::100", false},
	} {
		a := addr(c.client)
		if got := s.Permits(s.FrontendByID(c.id), &a); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRestrictedToNobody: no range at all permits nobody.
func TestRestrictedToNobody(t *testing.T) {
	c := small()
	c.Frontends[5].Sources = table.Run{}
	s := load(t, c)
	if a := addr("10.244.0.1"); s.Permits(s.FrontendByID(16), &a) {
		t.Error("permitted")
	}
}

// TestPermitsAgainstScan compares the search with a look at every range.
func TestPermitsAgainstScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 200 {
		var ends []packet.Addr
		for i := range uint32(1 << 8) {
			if rng.IntN(8) == 0 {
				ends = append(ends, number(10<<24, i))
			}
		}
		c := small()
		c.Ranges = c.Ranges[:1]
		for ; len(ends) > 1; ends = ends[2:] {
			c.Ranges = append(c.Ranges, table.Range{First: ends[0], Last: ends[1]})
		}
		c.Frontends[5].Sources = table.Run{First: 1, Count: uint32(len(c.Ranges) - 1)}
		s := load(t, c)
		for i := range uint32(1 << 8) {
			a := number(10<<24, i)
			want := slices.ContainsFunc(c.Ranges, func(r table.Range) bool {
				return bytes.Compare(r.First[:], a[:]) <= 0 && bytes.Compare(a[:], r.Last[:]) <= 0
			})
			if got := s.Permits(s.FrontendByID(16), &a); got != want {
				t.Fatalf("%s in %v: %v, want %v", a, c.Ranges, got, want)
			}
		}
	}
}
