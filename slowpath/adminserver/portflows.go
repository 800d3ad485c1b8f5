package adminserver

import (
	"context"

	"lace-cni.io/lace/fastpath/conntrack"
)

// flowsByPort counts registered flows, closed ones among them, by the port behind which their
// client is now: they are what fills a port's share of the table. Its cost is one walk through
// the table. Without a flow table there are none: the rest of the answer is still worth having.
func (s *Server) flowsByPort(ctx context.Context) map[uint16]uint64 {
	out := make(map[uint16]uint64)
	tables, err := s.node.Tables()
	if err != nil {
		s.log.Debug("flows cannot be counted by port", "error", err)
		return out
	}
	defer tables.Close()
	err = s.walk(ctx, func(t FlowTable, _ uint32) {
		t.Range(func(f *conntrack.Flow) bool {
			if here := tables.Address(f.Network, &f.Src); here != nil {
				out[here.Port]++
			} else if port, ok := tables.Route(f.Network, &f.Src); ok {
				out[port]++
			}
			return true
		})
	})
	if err != nil {
		s.log.Debug("flows cannot be counted by port", "error", err)
	}
	return out
}
