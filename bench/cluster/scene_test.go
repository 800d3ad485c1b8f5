//go:build cluster

package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
)

// scene is what every lab of a comparison has beyond the usual: a node n3 and clients from
// beyond that live on n2, endpoints beyond that live on the outside host, and on that, too,
// whatever address nobody has, so that a packet that is passed on untouched is answered.
// Everything between n2 and the outside host goes by n1, in both directions.
var scene = map[string]string{
	"n1": `
		addr add 192.0.2.11/32 dev lo
		addr add 2001:db8::11/128 dev lo nodad
		route add 10.244.3.0/24 via 172.30.0.12
		route add 198.18.0.0/16 via 172.30.0.12
		route add 192.0.2.200/32 via 172.30.0.12
		route add fd00:10:244:3::/64 via fd30::12
		route add 2001:db8:5::/48 via fd30::12
		route add 2001:db8:2::/48 via fd30::12`,
	"n2": `
		addr add 172.30.0.13/24 dev eth0
		addr add fd30::13/64 dev eth0 nodad
		addr add 10.244.3.11/32 dev lo
		addr add 198.18.0.5/32 dev lo
		addr add 192.0.2.200/32 dev lo
		addr add fd00:10:244:3::11/128 dev lo nodad
		addr add 2001:db8:5::5/128 dev lo nodad
		addr add 2001:db8:2::200/128 dev lo nodad
		route add 10.96.0.0/16 via 172.30.0.11
		route add 203.0.113.0/24 via 172.30.0.11
		route add 198.51.100.0/24 via 172.30.0.11
		route add 192.0.2.11/32 via 172.30.0.11
		route add 192.0.2.77/32 via 172.30.0.11
		route add fd00:10:96::/112 via fd30::11
		route add 2001:db8:113::/64 via fd30::11
		route add 2001:db8:100::/64 via fd30::11
		route add 2001:db8::11/128 via fd30::11
		route add 2001:db8:77::/64 via fd30::11`,
	lab.OutsideName: `
		addr add 192.0.2.77/32 dev lo
		addr add 2001:db8:77::77/128 dev lo nodad
		route add local 10.96.0.0/16 dev lo
		route add local 203.0.113.0/24 dev lo
		route add local 198.51.100.0/24 dev lo
		route add local fd00:10:96::/112 dev lo
		route add local 2001:db8:113::/64 dev lo
		route add local 2001:db8:100::/64 dev lo
		route add 192.0.2.11/32 via 172.30.0.11
		route add 192.0.2.200/32 via 172.30.0.11
		route add 198.18.0.0/16 via 172.30.0.11
		route add 172.30.0.12/32 via 172.30.0.11
		route add 172.30.0.13/32 via 172.30.0.11
		route replace 10.244.2.0/24 via 172.30.0.11
		route add 10.244.3.0/24 via 172.30.0.11
		route add 2001:db8::11/128 via fd30::11
		route add 2001:db8:5::/48 via fd30::11
		route add 2001:db8:2::/48 via fd30::11
		route add fd30::12/128 via fd30::11
		route add fd30::13/128 via fd30::11
		route replace fd00:10:244:2::/64 via fd30::11
		route add fd00:10:244:3::/64 via fd30::11`,
}

// plain are kernel parameters without which a lab would not answer as often as it is asked:
// whoever answers may do so in another's name, errors are not rationed, and nobody is told of
// shorter ways.
var plain = []lab.Sysctl{
	{Name: "net.ipv4.ip_nonlocal_bind", Value: "1"},
	{Name: "net.ipv6.ip_nonlocal_bind", Value: "1"},
	{Name: "net.ipv4.icmp_ratelimit", Value: "0"},
	{Name: "net.ipv6.icmp.ratelimit", Value: "0"},
	{Name: "net.ipv4.conf.all.send_redirects", Value: "0"},
	{Name: "net.ipv4.conf.eth0.send_redirects", Value: "0"},
	{Name: "net.ipv4.conf.all.accept_redirects", Value: "0"},
	{Name: "net.ipv4.conf.eth0.accept_redirects", Value: "0"},
	{Name: "net.ipv6.conf.eth0.accept_redirects", Value: "0"},
}

// stage is one lab of a comparison.
type stage struct {
	*world
	rules   bool // the kernel's, which see what the node sends
	mu      sync.Mutex
	servers map[netip.AddrPort]*traffic.Server
}

func newStage(w *world) *stage {
	w.t.Helper()
	s := &stage{world: w, servers: map[netip.AddrPort]*traffic.Server{}}
	w.t.(*testing.T).Cleanup(func() {
		for _, server := range s.servers {
			_ = server.Close() // its namespace goes next
		}
	})
	for name, commands := range scene {
		h, err := s.Host(name)
		s.must(err)
		s.must(h.SetSysctls(s.t.Context(), plain...))
		for line := range strings.Lines(strings.TrimSpace(commands)) {
			args := strings.Fields(line)
			if strings.Contains(line, ":") {
				args = append([]string{"-6"}, args...)
			}
			_, err := runIn(s.t.Context(), h.PID(), "ip", args...)
			s.must(err)
		}
	}
	return s
}

// ofN1 are the addresses that node n1 has in a scene, its gateway's towards pods included.
var ofN1 = addrs("172.30.0.11", "fd30::11", "192.0.2.11", "2001:db8::11", "10.244.1.1", "fd00:10:244:1::1")

// onN2 are those that are found on n2 and are not its pods'.
var onN2 = addrs("172.30.0.12", "fd30::12", "172.30.0.13", "fd30::13", "10.244.3.11", "fd00:10:244:3::11", "198.18.0.5", "2001:db8:5::5", "192.0.2.200", "2001:db8:2::200")

func addrs(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// at is the host where an address is found.
func (s *stage) at(a netip.Addr) *lab.Host {
	switch {
	case slices.Contains(ofN1, a):
		return s.Node("n1").Host
	case slices.Contains(onN2, a):
		return s.Node("n2").Host
	}
	for _, p := range s.Pods() {
		if p.Addr4 == a || p.Addr6 == a {
			return p
		}
	}
	return s.Outside()
}

// listen sees to it that somebody answers at an address, with that address as its name.
func (s *stage) listen(at netip.AddrPort) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[at] != nil {
		return nil
	}
	return inside(s.at(at.Addr()).PID(), func() (err error) {
		server, err := traffic.Listen(at.String(), at)
		if err == nil {
			s.servers[at] = server
		}
		return err
	})
}

// marked waits until what was declared last is in use: a Service of its own that has exactly
// these endpoints.
func (s *stage) marked(at netip.Addr, endpoints ...netip.AddrPort) {
	s.t.Helper()
	var want []string
	for _, e := range endpoints {
		s.must(s.listen(e))
		want = append(want, e.String())
	}
	slices.Sort(want)
	s.eventually(fmt.Sprintf("%s is answered by %q", at, want), func() error {
		seen := map[string]bool{}
		for range 16 {
			a, err := s.Pod("shopper").Dial(s.t.Context(), traffic.Request{Network: "tcp", To: netip.AddrPortFrom(at, 80)})
			if err != nil || a.Outcome != traffic.OK {
				return errors.Join(err, errors.New(a.String()))
			}
			seen[a.Server] = true
		}
		if got := sorted(seen); !slices.Equal(got, want) {
			return fmt.Errorf("by %q", got)
		}
		return nil
	})
}

func sorted[V any](m map[string]V) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
