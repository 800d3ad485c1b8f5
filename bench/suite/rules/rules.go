// Package rules writes the kernel rules of a node as kube-proxy lays them out, for nftables
// and for iptables, so that Lace is measured against what it replaces.
//
// It owns text: layout and order of tables, chains, maps and rules follow kube-proxy's
// pkg/proxy/nftables and pkg/proxy/iptables (chains per service port and per endpoint,
// random choice, masquerade by mark). What does not lie on the way of a packet is left out:
// node ports, health ports, load balancer sources, affinity. It never runs anything.
package rules

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
)

// Port is one port of a service.
type Port struct {
	Protocol string // tcp or udp
	Port     uint16
	Target   uint16 // of the endpoints
}

// Service is one service with a cluster IP of IPv4.
type Service struct {
	Name      string // unique
	VIP       netip.Addr
	Ports     []Port
	Endpoints []netip.Addr
}

// Cluster says what the rules need to know beyond services.
type Cluster struct {
	Pods     netip.Prefix // sources outside of it are masqueraded
	Services netip.Prefix
}

// masqueradeMark is kube-proxy's default, bit 14.
const masqueradeMark = 0x4000

// writer remembers the first error, so that rules read like rules.
type writer struct {
	*bufio.Writer
}

func newWriter(w io.Writer) *writer { return &writer{bufio.NewWriterSize(w, 1<<20)} }

// line writes one line; an error stays with the writer until Flush.
func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

// each visits the ports of all services.
func each(services []Service, visit func(*Service, *Port)) {
	for i := range services {
		for k := range services[i].Ports {
			visit(&services[i], &services[i].Ports[k])
		}
	}
}
