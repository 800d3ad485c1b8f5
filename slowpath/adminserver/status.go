package adminserver

import (
	"net/http"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// status is what the node says, with the number of flows that are not closed. When they
// cannot be counted there is none: the rest of the answer is still worth having.
func (s *Server) status(r *http.Request) (api.Status, error) {
	out := s.node.Status()
	flows, err := s.flowsByBackend(r.Context())
	if err != nil {
		return out, err
	}
	for _, n := range flows {
		out.Fastpath.Open += n
	}
	return out, nil
}
