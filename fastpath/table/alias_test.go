package table_test

import (
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// aliased is small with an alias of its node port.
func aliased() *table.Contents {
	c := small()
	f := c.Frontends[4]
	f.ID, f.Addr, f.AliasOf = 18, addr("169.254.76.1"), 15
	c.Frontends = append(c.Frontends, f)
	return c
}

// TestAliases: every alias is found with the frontend for which it stands.
func TestAliases(t *testing.T) {
	s, err := table.Load(encode(t, aliased()))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	s.Aliases(func(alias, of *table.Frontend) {
		found++
		if alias.ID != 18 || of.ID != 15 {
			t.Errorf("%v stands for %v, want 18 for 15", alias, of)
		}
	})
	if found != 1 {
		t.Errorf("%d aliases, want 1", found)
	}
}

// TestAliasThatStandsForNothing: what a socket could not be sent to is refused.
func TestAliasThatStandsForNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(alias *table.Frontend, c *table.Contents)
		want   string
	}{
		{"of nobody", func(f *table.Frontend, _ *table.Contents) { f.AliasOf = 99 }, "id 99, which is not among the frontends"},
		{"of itself", func(f *table.Frontend, _ *table.Contents) { f.AliasOf = f.ID }, "which is one itself"},
		{"of a whole address", func(f *table.Frontend, _ *table.Contents) { f.Flags = 0 }, "takes the whole of its address"},
		{"at another port", func(f *table.Frontend, _ *table.Contents) { f.Port++ }, "differs in more than its address"},
		{"in another network", func(f *table.Frontend, _ *table.Contents) { f.Network = 5 }, "differs in more than its address"},
		{"of another family", func(f *table.Frontend, c *table.Contents) {
			f.Addr = addr("fd4c::1")
			f.Inside, f.Outside, f.Keep = table.Set{}, table.Set{}, table.Run{}
		}, "differs in more than its address"},
		{"of another protocol", func(f *table.Frontend, c *table.Contents) {
			f.Protocol = packet.ProtocolUDP
			f.Inside, f.Outside, f.Keep = table.Set{}, table.Set{}, table.Run{}
		}, "differs in more than its address"},
	} {
		contents := aliased()
		c.change(&contents.Frontends[len(contents.Frontends)-1], contents)
		if _, err := table.Encode(nil, contents); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("an alias %s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}
