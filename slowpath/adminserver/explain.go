package adminserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

const (
	// memorySlots is the size of the flow table that an explanation has for itself.
	memorySlots = 1 + 4*conntrack.BucketSlots
	// clientPort is the least source port of the packet tried; Linux begins its own at
	// 32768, IANA at 49152.
	clientPort = 49152
	maxLive    = 10
)

// explain runs the production pipeline on a made-up packet and tells its steps.
func (s *Server) explain(r *http.Request) (api.Explanation, error) {
	q := r.URL.Query()
	from, err := parseOrigin(q.Get("from"))
	if err != nil {
		return api.Explanation{}, err
	}
	to, err := parseDestination(q.Get("to"))
	if err != nil {
		return api.Explanation{}, err
	}
	state := s.node.State()
	if state == nil || state.Generation == 0 { // without tables there may be Problems already
		return api.Explanation{}, fmt.Errorf("nothing has been published yet: %s", s.node.Status().Waiting)
	}
	tables, err := s.node.Tables()
	if err != nil {
		return api.Explanation{}, err
	}
	defer tables.Close()
	who, err := locate(from, to.addr.Addr(), state, tables)
	if err != nil {
		return api.Explanation{}, err
	}
	if loops(who, to, tables) {
		to = s.redirected(to, tables)
	}
	out := api.Explanation{From: q.Get("from"), To: q.Get("to"), Port: who.port.Device(), Generation: tables.Generation()}
	if err := s.try(&out, who, to, tables, namesOf(state)); err != nil {
		return api.Explanation{}, err
	}
	noteChoice(&out, who, to, tables, state)
	out.Live = s.live(r.Context(), who, to, state)
	noteNode(&out, who, state)
	noteNoPort(&out)
	if f := s.node.Status().Fastpath; !f.Alive {
		noteDown(&out, f.Message)
	}
	return out, nil
}

// try sends the packet as far as it goes.
func (s *Server) try(out *api.Explanation, who sender, to destination, tables *table.Snapshot, n names) error {
	source := netip.AddrPortFrom(who.addr, clientPort+uint16(rand.N(1<<16-clientPort)))
	out.Source = source.String()
	out.Service = n.services[target{uint32(who.port.Network), to.addr, uint8(to.protocol)}]
	if to.addr.Addr().IsLoopback() {
		settle(out, reason.NotClaimed, "claim", "the destination is a loopback address, which Lace does not meet: node ports are answered at other addresses of the node, not there")
		return nil
	}
	if loops(who, to, tables) {
		settle(out, reason.NotClaimed, "claim", "the destination is an address of the node itself: what the node sends to itself stays on its loopback device, where Lace does not meet it")
		return nil
	}
	if text := claimed(who, to, tables); text != "" {
		if elsewhere := s.elsewhere(who, to); elsewhere != "" {
			settle(out, reason.NotClaimed, "route", "the destination is one that Lace serves, but "+elsewhere)
			return nil
		}
		out.Steps = append(out.Steps, api.Step{Stage: "claim", Text: text})
		return s.process(out, who, source, to, tables, n)
	}
	if taken, ok := s.taken(to); ok {
		if elsewhere := s.elsewhere(who, to); elsewhere != "" {
			settle(out, reason.NotClaimed, "route", "the destination is an address of no Service, in service range "+taken.String()+", but "+elsewhere)
			return nil
		}
		unallocated(out, who, taken)
		return nil
	}
	settle(out, reason.NotClaimed, "claim", "the destination is no address of a Service: the kernel moves the packet as if Lace were not there")
	return nil
}

// loops reports whether the node sends to one of its own addresses.
func loops(who sender, to destination, tables *table.Snapshot) bool {
	addr := packet.AddrFrom(to.addr.Addr())
	here := tables.Address(who.port.Network, &addr)
	return who.port.Kind == table.PortHost && here != nil && here.Port == table.HostPort
}

// claimed says how the packet comes to Go; empty: it does not.
func claimed(who sender, to destination, tables *table.Snapshot) string {
	addr := packet.AddrFrom(to.addr.Addr())
	what := "an address of a Service"
	if to.own.IsValid() {
		return fmt.Sprintf("the destination is a port of a Service on the node's own address %s: the program of the node's sockets sends the connection to its alias %s, and the node's route brings the packet to lace0, whose program hands it to Go", to.own, to.addr.Addr())
	}
	if !tables.IsVIP(who.port.Network, &addr) {
		if tables.Frontend(who.port.Network, &addr, uint8(to.protocol), to.addr.Port()) == nil {
			return ""
		}
		what = "a port of a Service on the address of a node"
	}
	if who.port.Kind == table.PortHost {
		return fmt.Sprintf("the destination is %s: the node's route brings the packet to lace0, whose program hands it to Go", what)
	}
	return fmt.Sprintf("the destination is %s: the program on %s hands the packet to Go", what, who.port.Device())
}

// taken finds the service range in which the destination lies: the node's routes bring
// every packet to it to lace0, from wherever it comes.
func (s *Server) taken(to destination) (netip.Prefix, bool) {
	for _, p := range s.node.Ranges() {
		if p.Contains(to.addr.Addr()) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// unallocated tells the way of a packet to an address of a service range that no Service
// has. No part of it is Go's.
func unallocated(out *api.Explanation, who sender, taken netip.Prefix) {
	met := "the destination is no address of a Service"
	if who.port.Kind != table.PortHost {
		met = fmt.Sprintf("the destination is no address of a Service: the program on %s leaves the packet to the kernel", who.port.Device())
	}
	out.Steps = append(out.Steps,
		api.Step{Stage: "claim", Text: met},
		api.Step{Stage: "route", Text: fmt.Sprintf("the node's route of the service range %s leads to lace0, whose program drops what no Service has", taken)})
	settle(out, reason.UnallocatedVIP, "verdict", verdictText(reason.UnallocatedVIP))
}

// verdictText is the last step, as the pipeline words it.
func verdictText(r reason.Reason) string {
	return fmt.Sprintf("%s, reason %s: %s", r.Class(), r, r.Help())
}

// process runs the pipeline on a flow table of this question's own.
func (s *Server) process(out *api.Explanation, who sender, source netip.AddrPort, to destination, tables *table.Snapshot, n names) error {
	flows, err := conntrack.New(memorySlots)
	if err != nil {
		return err
	}
	frame := synthetic(source, to.addr, to.protocol)
	punt := packet.Punt{Port: who.port.ID, Why: packet.PuntVIP}
	packet.WritePunt(frame, punt)
	var trace pipeline.Trace
	result := pipeline.New(pipeline.Config{Flows: flows}).Process(tables, frame, punt, monotonic(), &trace)
	for _, step := range trace.Steps {
		out.Steps = append(out.Steps, api.Step{Stage: step.Name, Text: step.Note})
	}
	out.Verdict, out.Reason, out.Help = result.Verdict.String(), result.Reason.String(), result.Reason.Help()

	var f conntrack.Flow
	tuple := conntrack.Tuple{
		Src: packet.AddrFrom(source.Addr()), Dst: packet.AddrFrom(to.addr.Addr()),
		SrcPort: source.Port(), DstPort: to.addr.Port(), Network: who.port.Network, Protocol: uint8(to.protocol),
	}
	if flows.Lookup(&tuple, &f) {
		out.Backend, out.Pod = addrPort(f.Rewrite.Dst, f.Rewrite.DstPort), n.pods[backendTarget(&f)]
		noteSource(out, who, &f)
		noteWay(out, who, &f, tables, s.node.State())
	}
	return nil
}

func settle(out *api.Explanation, r reason.Reason, stage, text string) {
	out.Steps = append(out.Steps, api.Step{Stage: stage, Text: text})
	out.Verdict, out.Reason, out.Help = r.Class().String(), r.String(), r.Help()
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}

// live lists flows that are registered between the two already and not closed: they keep
// their backend whatever the tables say now. Without a flow table there are none.
func (s *Server) live(ctx context.Context, who sender, to destination, state *publish.State) []api.Flow {
	var out []api.Flow
	n := namesOf(state)
	client := packet.AddrFrom(who.addr)
	wanted := target{uint32(who.port.Network), to.addr, uint8(to.protocol)}
	var back conntrack.Flow
	err := s.walk(ctx, func(t FlowTable, now uint32) {
		t.Range(func(f *conntrack.Flow) bool {
			if f.Src == client && frontendOf(f) == wanted && !closed(t, f, &back) {
				out = append(out, flowOf(t, f, n, now))
			}
			return len(out) < maxLive
		})
	})
	if err != nil {
		s.log.Debug("registered flows cannot be looked at", "error", err)
	}
	return out
}
