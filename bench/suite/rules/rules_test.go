package rules

import (
	"bytes"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"lace-cni.io/lace/bench/lab/testenv"
)

var cluster = Cluster{Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}

func services(n int) (out []Service) {
	vip := netip.MustParseAddr("10.96.0.10")
	for i := range n {
		out = append(out, Service{
			Name: "web" + decimal(uint16(i)), VIP: vip, Ports: []Port{{"udp", 80, 8080}, {"tcp", 80, 8080}},
			Endpoints: []netip.Addr{netip.MustParseAddr("10.244.1.11"), netip.MustParseAddr("10.244.1.12"), netip.MustParseAddr("10.244.2.11")},
		})
		vip = vip.Next()
	}
	return out
}

// TestLayout looks for the rules that a packet of a service meets, in kube-proxy's order.
func TestLayout(t *testing.T) {
	var nft, ipt bytes.Buffer
	if err := Nft(&nft, cluster, services(2)); err != nil {
		t.Fatal(err)
	}
	if err := Iptables(&ipt, cluster, services(2)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sentence, text string
		want           []string
	}{
		{"nftables: one look-up for all services, a chain for each port and endpoint", nft.String(), []string{
			"chain endpoint-web1-udp-80-2 {", "ip saddr 10.244.2.11 jump mark-for-masquerade", "meta l4proto udp dnat to 10.244.2.11:8080",
			"chain service-web1-udp-80 {", "ip daddr 10.96.0.11 udp dport 80 ip saddr != 10.244.0.0/16 jump mark-for-masquerade", "numgen random mod 3 vmap {", "2 : goto endpoint-web1-udp-80-2,",
			"10.96.0.11 . udp . 80 : goto service-web1-udp-80,", "vmap @service-ips", "hook prerouting priority dstnat; jump services;",
		}},
		{"iptables: services in a row, endpoints by probability, marked for masquerade", ipt.String(), []string{
			"*filter", "--ctstate RELATED,ESTABLISHED -j ACCEPT", "*nat", "-A PREROUTING", "-j MASQUERADE --random-fully",
			"-d 10.96.0.11/32 -p udp -m udp --dport 80 -j KUBE-SVC-", "! -s 10.244.0.0/16 -j KUBE-MARK-MASQ",
			"--probability 0.3333333333 -j KUBE-SEP-", "--to-destination 10.244.1.11:8080", "--probability 0.5000000000 -j KUBE-SEP-", "--to-destination 10.244.2.11:8080",
			"KUBE-NODEPORTS",
		}},
	} {
		rest := c.text
		for _, want := range c.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("%s: %q is not there, or not behind what comes before it", c.sentence, want)
				break
			}
			rest = after
		}
	}
}

func TestChainNamesFitAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	list := services(500)
	each(list, func(s *Service, p *Port) {
		for _, e := range append([]netip.Addr{{}}, s.Endpoints...) {
			name := chainOf("KUBE-SEP-", s, p, e)
			if len(name) > 28 || seen[name] {
				t.Errorf("chain %s: too long, or there twice", name)
			}
			seen[name] = true
		}
	})
}

// TestTheKernelTakesThem loads the rules, each tool in a network namespace of its own that
// ends with it.
func TestTheKernelTakesThem(t *testing.T) {
	testenv.Privileged(t)
	for _, c := range []struct {
		tool  []string
		write func(*bytes.Buffer) error
	}{
		{[]string{"nft", "-f", "/dev/stdin"}, func(b *bytes.Buffer) error { return Nft(b, cluster, services(20)) }},
		{[]string{"iptables-restore"}, func(b *bytes.Buffer) error { return Iptables(b, cluster, services(20)) }},
	} {
		t.Run(c.tool[0], func(t *testing.T) {
			if _, err := exec.LookPath(c.tool[0]); err != nil {
				t.Skip(err)
			}
			var text bytes.Buffer
			if err := c.write(&text); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(c.tool[0], c.tool[1:]...)
			cmd.Stdin = &text
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
