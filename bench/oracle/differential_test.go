package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"lace-cni.io/lace/bench/oracle"
	"lace-cni.io/lace/fastpath/packet"
)

var (
	cases     = flag.Int("cases", 10_000, "how many packets are compared")
	firstSeed = flag.Uint64("seed", 1, "seed of the first cluster")
)

// perCluster is how many packets are sent in one cluster.
const perCluster = 20

// TestAnyCluster compares what Lace does with what the oracle says, for packets from
// everywhere in clusters that dice were thrown for.
func TestAnyCluster(t *testing.T) {
	seen := make(map[string]int)
	for i := range uint64(*cases / perCluster) {
		seed := *firstSeed + i
		if d := compare(t, rand.New(rand.NewPCG(seed, 0)), seed, seen); d != "" {
			t.Fatalf("%s\nrepeat with -run TestAnyCluster -seed %d -cases %d, and give what is mended a test of its own", d, seed, perCluster)
		}
	}
	t.Log(seen)
	for _, class := range []string{"pass", "forward", "refuse", "drop", "kept", "this node", "called", "remembered"} {
		if *cases >= 1000 && seen[class] == 0 {
			t.Errorf("not one packet had the outcome %q: the dice are loaded", class)
		}
	}
}

// FuzzCluster is the same with dice that the fuzzer loads.
func FuzzCluster(f *testing.F) {
	for seed := range uint64(20) {
		b := make([]byte, 1024)
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dice := oracle.Bytes(b)
		if d := compare(t, &dice, 1, map[string]int{}); d != "" {
			t.Fatal(d)
		}
	})
}

// client is who is remembered, and by which port of a Service.
type client struct {
	port string
	addr netip.Addr
}

// compare throws dice for a cluster and packets, and returns how Lace and the oracle differ.
func compare(t testing.TB, d oracle.Dice, seed uint64, seen map[string]int) string {
	c := oracle.Generate(d)
	l := newLace(t, c, d.IntN(2) == 1, seed)
	had := make(map[client]netip.AddrPort)
	var flows []begun
	for i := range perCluster {
		if i == perCluster/2 {
			oracle.Change(d, c)
			l.load(c)
			if wrong := follow(c, l, flows, seen); wrong != "" {
				return wrong
			}
			clear(had) // a Service may have been made anew
		}
		p := oracle.Ask(d, c)
		want := c.Judge(p)
		f, got := l.begin(p)
		if wrong := differs(c, l, p, want, got, had, seen); wrong != "" {
			return report(c, wrong, p, want, got)
		}
		if got.class == oracle.Forward {
			flows = append(flows, begun{f, got.to, want.Port})
		}
	}
	return ""
}

// begun is a flow, and whom it was given to.
type begun struct {
	flow
	to   netip.AddrPort
	port *oracle.Port
}

// follow sends another packet of every flow after a change.
func follow(c *oracle.Cluster, l *lace, flows []begun, seen map[string]int) string {
	for _, f := range flows {
		want, known := c.Follow(f.Packet, f.port, f.to)
		if !known {
			continue
		}
		got := l.send(f.flow, packet.FlagACK)
		seen["followed "+want.Class.String()]++
		switch {
		case want.Port == nil && got.class != oracle.Forward: // ended
		case got.class != want.Class:
			return report(c, "a flow to "+f.to.String()+" after a change: another verdict", f.Packet, want, got)
		case want.Class == oracle.Forward && !slices.Contains(want.Endpoints, got.to):
			return report(c, "a flow to "+f.to.String()+" after a change: another endpoint", f.Packet, want, got)
		}
	}
	return ""
}

func report(c *oracle.Cluster, wrong string, p oracle.Packet, want oracle.Outcome, got answer) string {
	return fmt.Sprintf("%s\npacket: %s\nLace: %s (%s) %s as %s\noracle: %s %v\n%s", wrong, text(p), got.class, got.reason, got.to, got.source, want.Class, want.Endpoints, oracle.Describe(c, nil))
}

// differs compares the outcome of a packet that began something.
func differs(c *oracle.Cluster, l *lace, p oracle.Packet, want oracle.Outcome, got answer, had map[client]netip.AddrPort, seen map[string]int) string {
	seen[want.Class.String()]++
	if got.class != want.Class {
		return "another verdict"
	}
	if want.Class != oracle.Forward {
		return ""
	}
	if e := l.eligible(p); !slices.Equal(e, want.Endpoints) {
		return fmt.Sprintf("other endpoints: the tables have %v", e)
	}
	if !slices.Contains(want.Endpoints, got.to) {
		return "an endpoint that may not be chosen"
	}
	sees := c.Sees(p, got.to.Addr())
	seen[sees.String()]++
	if as := shown(c, p, sees); got.source != as {
		return fmt.Sprintf("another source address: it must be %s (%s)", as, sees)
	}
	if !want.Port.Reminded {
		return ""
	}
	who := client{fmt.Sprint(want.Port.Service.Name, want.Port.Port.Name, p.Protocol, p.To.Addr().Is4()), p.Source}
	if before, known := had[who]; known && slices.Contains(want.Endpoints, before) {
		seen["remembered"]++
		if got.to != before {
			return fmt.Sprintf("another endpoint than before: the client had %s", before)
		}
	}
	had[who] = got.to
	return ""
}

// shown is the source address that an endpoint sees.
func shown(c *oracle.Cluster, p oracle.Packet, s oracle.Sender) netip.Addr {
	switch {
	case s == oracle.Called:
		return p.To.Addr()
	case s == oracle.ThisNode && p.Source.Is4():
		return c.Own[0]
	case s == oracle.ThisNode:
		return c.Own[1]
	}
	return p.Source
}

func text(p oracle.Packet) string {
	return fmt.Sprintf("%s %s from %s to %s", p.Protocol, [...]string{"of a pod", "of the node", "from outside"}[p.From], p.Source, p.To)
}
