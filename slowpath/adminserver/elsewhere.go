package adminserver

import (
	"fmt"

	"lace-cni.io/lace/fastpath/table"
)

// elsewhere says by which way the node's own packets leave when that is not the trunk, where
// Lace meets them; empty: it is, or the packet is not the node's own. A node whose routes
// cannot be read is taken to have those that the agent keeps.
func (s *Server) elsewhere(who sender, to destination) string {
	if who.port.Kind != table.PortHost {
		return ""
	}
	device, err := s.node.Leaves(to.addr.Addr())
	trunk := who.port.Device()
	switch {
	case err != nil:
		s.log.Debug("the node's routes cannot be read", "error", err)
		return ""
	case device == trunk:
		return ""
	case device == "":
		return fmt.Sprintf("the node has no route to %s, which fails at once; a service range that holds it would be routed to %s (--service-cidrs, ServiceCIDR, `lace get problems`)", to.addr.Addr(), trunk)
	}
	return fmt.Sprintf("the node's route to %s leaves by %s and not by %s, so Lace does not meet the packet; a service range that holds it would be routed there (--service-cidrs, ServiceCIDR, `lace get problems`)", to.addr.Addr(), device, trunk)
}
