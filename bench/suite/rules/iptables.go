package rules

import (
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"strconv"
)

// Iptables writes the rules for iptables-restore.
func Iptables(out io.Writer, c Cluster, services []Service) error {
	w := newWriter(out)
	w.iptablesFilter()
	w.iptablesNat(c, services)
	return w.Flush()
}

func (w *writer) iptablesFilter() {
	w.line("*filter")
	for _, chain := range []string{"KUBE-FORWARD", "KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL", "KUBE-FIREWALL", "KUBE-NODEPORTS", "KUBE-PROXY-CANARY"} {
		w.line(":%s - [0:0]", chain)
	}
	for _, chain := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		w.line("-A %s -m conntrack --ctstate NEW -m comment --comment \"kubernetes load balancer firewall\" -j KUBE-PROXY-FIREWALL", chain)
		if chain == "FORWARD" {
			w.line("-A FORWARD -m comment --comment \"kubernetes forwarding rules\" -j KUBE-FORWARD")
		}
		w.line("-A %s -m conntrack --ctstate NEW -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES", chain)
		if chain != "OUTPUT" {
			w.line("-A %s -m conntrack --ctstate NEW -m comment --comment \"kubernetes externally-visible service portals\" -j KUBE-EXTERNAL-SERVICES", chain)
		}
		if chain != "FORWARD" {
			w.line("-A %s -j KUBE-FIREWALL", chain)
		}
	}
	w.line("-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP")
	w.line("-A KUBE-FORWARD -m comment --comment \"kubernetes forwarding rules\" -m mark --mark 0x%x/0x%x -j ACCEPT", masqueradeMark, masqueradeMark)
	w.line("-A KUBE-FORWARD -m comment --comment \"kubernetes forwarding conntrack rule\" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT")
	w.line("COMMIT")
}

func (w *writer) iptablesNat(c Cluster, services []Service) {
	w.line("*nat")
	for _, chain := range []string{"KUBE-SERVICES", "KUBE-POSTROUTING", "KUBE-NODEPORTS", "KUBE-MARK-MASQ"} {
		w.line(":%s - [0:0]", chain)
	}
	each(services, func(s *Service, p *Port) {
		w.line(":%s - [0:0]", chainOf("KUBE-SVC-", s, p, netip.Addr{}))
		for _, e := range s.Endpoints {
			w.line(":%s - [0:0]", chainOf("KUBE-SEP-", s, p, e))
		}
	})
	w.line("-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES")
	w.line("-A OUTPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES")
	w.line("-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j KUBE-POSTROUTING")
	w.line("-A KUBE-POSTROUTING -m mark ! --mark 0x%x/0x%x -j RETURN", masqueradeMark, masqueradeMark)
	w.line("-A KUBE-POSTROUTING -j MARK --xor-mark 0x%x", masqueradeMark)
	w.line("-A KUBE-POSTROUTING -m comment --comment \"kubernetes service traffic requiring SNAT\" -j MASQUERADE --random-fully")
	w.line("-A KUBE-MARK-MASQ -j MARK --or-mark 0x%x", masqueradeMark)
	each(services, func(s *Service, p *Port) { w.iptablesPort(c, s, p) })
	w.line("-A KUBE-SERVICES -m comment --comment \"kubernetes service nodeports; NOTE: this must be the last rule in this chain\" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS")
	w.line("COMMIT")
}

// iptablesPort are the rules of a service port; each endpoint gets its share by a
// probability of what the ones before have left.
func (w *writer) iptablesPort(c Cluster, s *Service, p *Port) {
	svc := chainOf("KUBE-SVC-", s, p, netip.Addr{})
	match := fmt.Sprintf("-d %s/32 -p %s -m %s --dport %d", s.VIP, p.Protocol, p.Protocol, p.Port)
	w.line("-A KUBE-SERVICES -m comment --comment \"ns/%s cluster IP\" %s -j %s", s.Name, match, svc)
	w.line("-A %s -m comment --comment \"ns/%s cluster IP\" %s ! -s %s -j KUBE-MARK-MASQ", svc, s.Name, match, c.Pods)
	n := len(s.Endpoints)
	for i, e := range s.Endpoints {
		sep := chainOf("KUBE-SEP-", s, p, e)
		share := ""
		if i < n-1 {
			share = fmt.Sprintf("-m statistic --mode random --probability %.10f ", 1/float64(n-i))
		}
		w.line("-A %s -m comment --comment \"ns/%s -> %s:%d\" %s-j %s", svc, s.Name, e, p.Target, share, sep)
		w.line("-A %s -m comment --comment ns/%s -s %s/32 -j KUBE-MARK-MASQ", sep, s.Name, e)
		w.line("-A %s -m comment --comment ns/%s -p %s -m %s -j DNAT --to-destination %s:%d", sep, s.Name, p.Protocol, p.Protocol, e, p.Target)
	}
}

// chainOf names a chain as kube-proxy does: a prefix and 16 characters of a hash, within the
// 28 that iptables allows.
func chainOf(prefix string, s *Service, p *Port, endpoint netip.Addr) string {
	h := fnv.New64a()
	fmt.Fprint(h, s.Name, "/", p.Protocol, p.Port, "/", endpoint)
	return prefix + fmt.Sprintf("%016X", h.Sum64())
}

func decimal(n uint16) string { return strconv.Itoa(int(n)) }
