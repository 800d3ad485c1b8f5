package adminserver

import (
	"net/http"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/xdp"
)

// causes says in a sentence why a packet was left to Go; docs/reference/lane.md says the
// same, and what to do.
var causes = [xdp.Causes]string{
	xdp.CauseMiss:       "No flow has the packet: Go chooses a backend or answers",
	xdp.CauseGoMode:     "The flow is not handed over to the kernel, or the lane is off",
	xdp.CauseGeneration: "The flow's Service, endpoint or way changed: Go looks at it again",
	xdp.CauseSYN:        "A SYN on a registered flow: Go tells a repetition from a new connection",
	xdp.CauseTorn:       "Go was writing the flow at that moment",
	xdp.CauseTTL:        "Time to live or hop limit used up: Go tells its sender",
	xdp.CauseMTU:        "The packet does not fit the way out: Go tells its sender",
	xdp.CausePort:       "The packet came in on another port than its flow does",
	xdp.CauseHeader:     "IP options, extension headers, a fragment, or a protocol that the kernel does not rewrite",
	xdp.CauseICMP:       "An ICMP error about a registered flow, or any ICMP message to a VIP",
}

// lane shows what can be read; what cannot is named.
func (s *Server) lane(r *http.Request) (api.Lane, error) {
	out := api.Lane{Punts: []api.Punt{}, Drops: []api.Drop{}}
	if tables, err := s.node.Tables(); err == nil {
		out.On = tables.Settings().Lane != 0
		_ = tables.Close()
	}
	err := s.walk(r.Context(), func(t FlowTable, _ uint32) {
		c := t.Counts()
		out.Flows, out.Installed = c.Slots/2, c.Lane
		out.Open, out.OpenLane = open(t)
	})
	if r.Context().Err() != nil {
		return out, r.Context().Err()
	}
	if err != nil {
		out.Message = err.Error()
	}
	_, kernel := s.node.Counts()
	if kernel == nil {
		return out, nil
	}
	out.Hits = amount(kernel.Hits())
	for cause := xdp.Cause(1); int(cause) < xdp.Causes; cause++ {
		out.Punts = append(out.Punts, api.Punt{Cause: cause.String(), Help: causes[cause], Amount: amount(kernel.Punts[cause])})
	}
	for why := reason.None + 1; why < reason.Count; why++ {
		if c := kernel.Reasons[why]; why.Class() == reason.ClassDrop && c.Packets > 0 {
			out.Drops = append(out.Drops, dropOf(why, "kernel", c.Packets, c.Bytes))
		}
	}
	return out, nil
}

// open counts the flows that are not closed, and those of them that the kernel carries.
func open(t FlowTable) (all, lane int) {
	var back conntrack.Flow
	t.Range(func(f *conntrack.Flow) bool {
		if !closed(t, f, &back) {
			all++
			if f.Mode == conntrack.ModeLane {
				lane++
			}
		}
		return true
	})
	return all, lane
}

func amount(c xdp.Count) api.Amount { return api.Amount{Packets: c.Packets, Bytes: c.Bytes} }
