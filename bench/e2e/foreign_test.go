package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/traffic"
)

// foreigns are the networks beside which Lace runs: how pods are attached, and whether
// netfilter sees what a bridge carries past the node's stack.
var foreigns = []struct {
	name     string
	topology lab.Topology
	bridgeNF string
}{
	{"routed pods", lab.Topology{RPFilter: 1, PodStyle: lab.PTP}, ""},
	{"bridged pods", lab.Topology{RPFilter: 2, PodStyle: lab.Bridge, Workers: 2}, "0"},
	{"bridged pods that netfilter sees", lab.Topology{RPFilter: 0, PodStyle: lab.Bridge}, "1"},
}

// The rules that somebody else has put on a node hold for what Lace has translated.
func TestForeignRules(t *testing.T) {
	for _, lane := range lanes {
		for _, f := range foreigns {
			t.Run("lane "+lane+", "+f.name, func(t *testing.T) {
				topology := f.topology
				topology.Lane, topology.Delivery = lane, "stack"
				c := newCluster(t, topology)
				if f.bridgeNF != "" {
					c.must(t, c.Node("n1").SetSysctls(t.Context(),
						lab.Sysctl{Name: "net.bridge.bridge-nf-call-iptables", Value: f.bridgeNF},
						lab.Sysctl{Name: "net.bridge.bridge-nf-call-ip6tables", Value: f.bridgeNF},
						// Redirects use up what the kernel allows of ICMP errors to one host; of IPv6
						// they cannot be switched off.
						lab.Sysctl{Name: "net.ipv4.conf.all.send_redirects", Value: "0"},
						lab.Sysctl{Name: "net.ipv4.conf.cni0.send_redirects", Value: "0"},
						lab.Sysctl{Name: "net.ipv6.icmp.ratelimit", Value: "0"}))
				}
				t.Run("a firewall that drops an endpoint's port", func(t *testing.T) { firewallDrops(t, c) })
				t.Run("a firewall that rejects an endpoint's port", func(t *testing.T) { firewallRejects(t, c) })
				t.Run("a policy that lets one pod in", func(t *testing.T) { policyLetsIn(t, c) })
				t.Run("addresses that somebody else translates on top", func(t *testing.T) { translatedOnTop(t, c) })
			})
		}
	}
}

// inside runs a program in a host's network namespace.
func inside(t *testing.T, h *lab.Host, input string, program ...string) string {
	t.Helper()
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, err := netns.GetFromPid(h.PID())
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err != nil {
			done <- result{err: err}
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), settleTime) // also when the test is over
		defer cancel()
		cmd := exec.CommandContext(ctx, program[0], program[1:]...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		done <- result{out, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(program, " "), r.err, r.out)
	}
	return string(r.out)
}

// inNamespace does something in the network namespace at a path.
func inNamespace(t *testing.T, path string, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, err := netns.GetFromPath(path)
		if err == nil {
			defer ns.Close()
			if err = netns.Set(ns); err == nil {
				do()
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// ipHere runs one command of iproute2 in the calling thread's namespace.
func ipHere(command string) ([]byte, error) {
	return exec.Command("ip", strings.Fields(command)...).CombinedOutput()
}

// rules puts a table of netfilter rules on n1 and takes it away with the test.
func (c *cluster) rules(t *testing.T, chains string) {
	t.Helper()
	n := c.Node("n1").Host
	inside(t, n, "table inet foreign {\n"+chains+"\n}\n", "nft", "-f", "/dev/stdin")
	t.Cleanup(func() { inside(t, n, "delete table inet foreign\n", "nft", "-f", "/dev/stdin") })
}

// counted is how many packets the named counter has seen.
func (c *cluster) counted(t *testing.T, counter string) int {
	t.Helper()
	out := inside(t, c.Node("n1").Host, "", "nft", "list", "counter", "inet", "foreign", counter)
	m := regexp.MustCompile(`packets (\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no counter in %s", out)
	}
	n, err := strconv.Atoi(m[1])
	c.must(t, err)
	return n
}

// meets makes an attempt and compares what became of it.
func (c *cluster) meets(t *testing.T, from string, r traffic.Request, want traffic.Outcome) {
	t.Helper()
	if want == traffic.Timeout {
		r.Timeout = 300 * time.Millisecond
	}
	if a := c.dial(t, from, r); a.Outcome != want {
		t.Errorf("%s to %s/%s: %s, want %s", from, r.To, r.Network, a, want)
	}
}

// firewallDrops: what the firewall drops is dropped, from whatever client, before and after a
// connection was made; everything else goes on.
func firewallDrops(t *testing.T, c *cluster) {
	held := c.stream(t, "shopper", way{"tcp", 4}, "solo", 1)
	goOn(t, []*lab.Stream{held})
	web1 := c.Pod("web-1")
	t.Run("while it stands", func(t *testing.T) {
		c.rules(t, fmt.Sprintf(`counter dropped {}
chain forward { type filter hook forward priority 0; policy accept;
 ip daddr %s meta l4proto { tcp, udp } th dport %d counter name dropped drop
 ip6 daddr %s meta l4proto { tcp, udp } th dport %[2]d counter name dropped drop
}`, web1.Addr4, lab.WebTarget, web1.Addr6))
		c.set(t, "twin", c.endpoints(t, manifests.Ready, "web-2"))
		defer c.set(t, "twin", c.endpoints(t, manifests.Ready, "web-1"))
		for _, from := range []string{"shopper", lab.OutsideName} {
			for _, w := range ways {
				before := c.counted(t, "dropped")
				c.meets(t, from, w.to("solo"), traffic.Timeout)
				if c.counted(t, "dropped") == before {
					t.Errorf("%s over %s: the rule has seen nothing", from, w)
				}
				c.meets(t, from, w.to("twin"), traffic.OK)
			}
		}
		p, err := held.Progress(t.Context())
		c.must(t, err)
		time.Sleep(50 * time.Millisecond) // nothing may happen meanwhile
		if q, err := held.Progress(t.Context()); err != nil || q.Turns > p.Turns+1 {
			t.Errorf("the connection that was there goes on: %d turns, then %d, %v", p.Turns, q.Turns, err)
		}
	})
	goOn(t, []*lab.Stream{held})
	c.finish(t, []*lab.Stream{held})
	c.meets(t, "shopper", way{"tcp", 6}.to("solo"), traffic.OK)
}

// firewallRejects: the client learns at once that it is refused, in the VIP's name.
func firewallRejects(t *testing.T, c *cluster) {
	web1 := c.Pod("web-1")
	c.rules(t, fmt.Sprintf(`chain forward { type filter hook forward priority 0; policy accept;
 ip daddr %s tcp dport %d reject with tcp reset
 ip6 daddr %s tcp dport %[2]d reject with tcp reset
 ip daddr %[1]s udp dport %[2]d reject with icmp port-unreachable
 ip6 daddr %[3]s udp dport %[2]d reject with icmpv6 port-unreachable
}`, web1.Addr4, lab.WebTarget, web1.Addr6))
	for _, from := range []string{"shopper", lab.OutsideName} {
		for _, w := range ways {
			c.meets(t, from, w.to("solo"), traffic.Refused)
		}
	}
}

// policyLetsIn is what network policies come down to: one client may open connections to the
// endpoint, what belongs to those passes, and what connection tracking cannot place does not.
func policyLetsIn(t *testing.T, c *cluster) {
	web1, shopper := c.Pod("web-1"), c.Pod("shopper")
	c.rules(t, fmt.Sprintf(`counter invalid {}
counter refused {}
chain forward { type filter hook forward priority 0; policy accept;
 ct state established,related accept
 ct state invalid counter name invalid drop
 ip saddr %s ip daddr %s accept
 ip6 saddr %s ip6 daddr %s accept
 ip daddr %[2]s counter name refused drop
 ip6 daddr %[4]s counter name refused drop
}`, shopper.Addr4, web1.Addr4, shopper.Addr6, web1.Addr6))
	for _, w := range ways {
		c.meets(t, "shopper", w.to("solo"), traffic.OK)
		r := w.to("solo")
		if w.network == "tcp" {
			r.Bytes, r.Timeout = 4<<20, silence
			c.meets(t, "shopper", r, traffic.OK)
		}
		for _, from := range []string{"web-2", "visitor", lab.OutsideName} {
			before := c.counted(t, "refused")
			c.meets(t, from, w.to("solo"), traffic.Timeout)
			if c.counted(t, "refused") == before {
				t.Errorf("%s over %s: the policy has seen nothing", from, w)
			}
		}
	}
	stream := c.stream(t, "shopper", way{"tcp", 6}, "solo", 2)
	goOn(t, []*lab.Stream{stream})
	c.finish(t, []*lab.Stream{stream})
	if n := c.counted(t, "invalid"); n > 0 {
		t.Errorf("connection tracking calls %d packets invalid", n)
	}
}

// translatedOnTop: a plugin that masquerades what pods send is undone before Lace translates
// the reply back.
func translatedOnTop(t *testing.T, c *cluster) {
	web1, n1 := c.Pod("web-1"), c.Node("n1")
	c.rules(t, fmt.Sprintf(`chain postrouting { type nat hook postrouting priority 100; policy accept;
 ip daddr %s masquerade
 ip6 daddr %s masquerade
}`, web1.Addr4, web1.Addr6))
	for _, w := range ways {
		a := c.dial(t, "shopper", w.to("solo"))
		if a.Outcome != traffic.OK || a.Client.Addr() == c.Pod("shopper").Addr(w.family) {
			t.Errorf("over %s: %s, seen as %s, want an address of %s", w, a, a.Client, n1.Name)
		}
	}
}
