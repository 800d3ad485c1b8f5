package adminserver

import (
	"cmp"
	"net/http"
	"slices"

	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// drops lists the reasons of class drop and answer that have counted something, by Go
// and by the BPF programs, most packets first.
func (s *Server) drops(*http.Request) (api.List[api.Drop], error) {
	totals, kernel := s.node.Counts()
	var out []api.Drop
	for r := reason.None + 1; r < reason.Count; r++ {
		if c := r.Class(); c != reason.ClassDrop && c != reason.ClassAnswer {
			continue
		}
		if totals != nil && totals.Reasons[r].Packets > 0 {
			out = append(out, dropOf(r, "go", totals.Reasons[r].Packets, totals.Reasons[r].Bytes))
		}
		if kernel != nil && kernel.Reasons[r].Packets > 0 {
			out = append(out, dropOf(r, "kernel", kernel.Reasons[r].Packets, kernel.Reasons[r].Bytes))
		}
	}
	s.nameHoles(out, totals)
	slices.SortStableFunc(out, func(a, b api.Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	return list(out), nil
}

func dropOf(r reason.Reason, where string, packets, bytes uint64) api.Drop {
	return api.Drop{Reason: r.String(), Help: r.Help(), Where: where, Class: r.Class().String(), Packets: packets, Bytes: bytes}
}
