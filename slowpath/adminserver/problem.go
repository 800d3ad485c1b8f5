package adminserver

import (
	"net/http"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/source"
)

func (s *Server) problems(*http.Request) (api.List[api.Problem], error) {
	state := s.node.State()
	if state == nil {
		return list[api.Problem](nil), nil
	}
	var out []api.Problem
	for _, p := range state.Problems {
		out = append(out, ProblemOf(p, s.node.Place(p)))
	}
	return list(out), nil
}

// ProblemOf is a Problem as people get it, with the place of its object.
func ProblemOf(p model.Problem, at source.Place) api.Problem {
	return api.Problem{Kind: p.Kind, Object: p.Object, Field: p.Field, Reason: p.Reason, Message: p.Message, Place: api.Place(at)}
}
