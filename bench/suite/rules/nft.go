package rules

import "io"

// Nft writes the rules for nft -f.
func Nft(out io.Writer, c Cluster, services []Service) error {
	w := newWriter(out)
	w.line("table ip kube-proxy {")
	w.line(" comment \"rules for kube-proxy\"")
	w.nftMaps(services)
	w.nftMasquerade()
	each(services, func(s *Service, p *Port) { w.nftPort(c, s, p) })
	w.nftServiceIPs(services)
	w.nftDispatch(c)
	w.line("}")
	return w.Flush()
}

// nftMaps are the sets and maps that the hooks consult; those of what there is none of are
// empty, as kube-proxy has them.
func (w *writer) nftMaps(services []Service) {
	w.line(" set cluster-ips {")
	w.line("  type ipv4_addr")
	if len(services) > 0 {
		w.line("  elements = {")
		for i := range services {
			w.line("   %s,", services[i].VIP)
		}
		w.line("  }")
	}
	w.line(" }")
	w.line(" set nodeport-ips { type ipv4_addr; }")
	w.line(" map no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }")
	w.line(" map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }")
	w.line(" map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }")
	w.line(" map service-nodeports { type inet_proto . inet_service : verdict; }")
}

func (w *writer) nftMasquerade() {
	w.line(" chain mark-for-masquerade { meta mark set meta mark or 0x%x; }", masqueradeMark)
	w.line(" chain masquerading {")
	w.line("  meta mark and 0x%x == 0 return", masqueradeMark)
	w.line("  meta mark set meta mark xor 0x%x", masqueradeMark)
	w.line("  masquerade fully-random")
	w.line(" }")
	w.line(" chain reject-chain { reject; }")
}

// nftPort is the chain of a service port and those of its endpoints.
func (w *writer) nftPort(c Cluster, s *Service, p *Port) {
	for i, e := range s.Endpoints {
		w.line(" chain %s {", endpointChain(s, p, i))
		w.line("  ip saddr %s jump mark-for-masquerade", e)
		w.line("  meta l4proto %s dnat to %s:%d", p.Protocol, e, p.Target)
		w.line(" }")
	}
	w.line(" chain %s {", serviceChain(s, p))
	w.line("  ip daddr %s %s dport %d ip saddr != %s jump mark-for-masquerade", s.VIP, p.Protocol, p.Port, c.Pods)
	w.WriteString("  numgen random mod ")
	w.line("%d vmap {", len(s.Endpoints))
	for i := range s.Endpoints {
		w.line("   %d : goto %s,", i, endpointChain(s, p, i))
	}
	w.line("  }")
	w.line(" }")
}

func serviceChain(s *Service, p *Port) string {
	return "service-" + s.Name + "-" + p.Protocol + "-" + decimal(p.Port)
}

func endpointChain(s *Service, p *Port, i int) string {
	return "endpoint-" + s.Name + "-" + p.Protocol + "-" + decimal(p.Port) + "-" + decimal(uint16(i))
}

func (w *writer) nftServiceIPs(services []Service) {
	w.line(" map service-ips {")
	w.line("  type ipv4_addr . inet_proto . inet_service : verdict")
	if len(services) > 0 {
		w.line("  elements = {")
		each(services, func(s *Service, p *Port) {
			w.line("   %s . %s . %d : goto %s,", s.VIP, p.Protocol, p.Port, serviceChain(s, p))
		})
		w.line("  }")
	}
	w.line(" }")
}

// nftDispatch are the hooks and what they jump to.
func (w *writer) nftDispatch(c Cluster) {
	w.line(" chain services {")
	w.line("  ip daddr . meta l4proto . th dport vmap @service-ips")
	w.line("  ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports")
	w.line(" }")
	w.line(" chain service-endpoints-check { ip daddr . meta l4proto . th dport vmap @no-endpoint-services; }")
	w.line(" chain nodeport-endpoints-check { ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports; }")
	w.line(" chain firewall-check { ip daddr . meta l4proto . th dport vmap @firewall-ips; }")
	w.line(" chain cluster-ips-check {")
	w.line("  ip daddr @cluster-ips jump reject-chain")
	w.line("  ip daddr %s drop", c.Services)
	w.line(" }")
	for _, hook := range []struct{ name, kind, hook, priority, jumps string }{
		{"nat-prerouting", "nat", "prerouting", "dstnat", "jump services"},
		{"nat-output", "nat", "output", "-100", "jump services"},
		{"nat-postrouting", "nat", "postrouting", "srcnat", "jump masquerading"},
		{"filter-prerouting", "filter", "prerouting", "-110", "ct state new jump firewall-check"},
		{"filter-input", "filter", "input", "-110", "ct state new jump nodeport-endpoints-check; ct state new jump service-endpoints-check"},
		{"filter-forward", "filter", "forward", "-110", "ct state new jump service-endpoints-check; ct state new jump cluster-ips-check"},
		{"filter-output", "filter", "output", "-110", "ct state new jump service-endpoints-check; ct state new jump firewall-check"},
		{"filter-output-post-dnat", "filter", "output", "-90", "ct state new jump cluster-ips-check"},
	} {
		w.line(" chain %s { type %s hook %s priority %s; %s; }", hook.name, hook.kind, hook.hook, hook.priority, hook.jumps)
	}
}
