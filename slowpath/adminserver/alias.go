package adminserver

import (
	"net/netip"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// redirected is where a socket of the node is sent that calls an address of the node itself:
// to its alias, where a Service has that port. Without the programs it goes where it went.
func (s *Server) redirected(to destination, tables *table.Snapshot) destination {
	if how := s.node.Status().Fastpath.Sockets; how != "" && how != api.SocketsAttached {
		return to
	}
	own := packet.AddrFrom(to.addr.Addr())
	tables.Aliases(func(alias, of *table.Frontend) {
		if of.Network == 0 && of.Addr == own && of.Port == to.addr.Port() && of.Protocol == uint8(to.protocol) {
			to.own, to.addr = own.Netip(), netip.AddrPortFrom(alias.Addr.Netip(), of.Port)
		}
	})
	return to
}
