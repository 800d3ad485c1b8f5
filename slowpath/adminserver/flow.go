package adminserver

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

// target is one address of a Service or endpoint.
type target struct {
	network  uint32
	addr     netip.AddrPort
	protocol uint8
}

func frontendOf(f *conntrack.Flow) target {
	return target{uint32(f.Network), netip.AddrPortFrom(f.Dst.Netip(), f.DstPort), f.Protocol}
}

func backendTarget(f *conntrack.Flow) target {
	return target{uint32(f.Network), netip.AddrPortFrom(f.Rewrite.Dst.Netip(), f.Rewrite.DstPort), f.Protocol}
}

func (s *Server) flows(r *http.Request) (api.List[api.Flow], error) {
	limit, err := limitOf(r)
	if err != nil {
		return api.List[api.Flow]{}, err
	}
	openOnly := r.URL.Query().Get("open") == "true"
	names := namesOf(s.node.State())
	out := list[api.Flow](nil)
	var back conntrack.Flow
	err = s.walk(r.Context(), func(t FlowTable, now uint32) {
		t.Range(func(f *conntrack.Flow) bool {
			if openOnly && closed(t, f, &back) {
				out.Closed++
				return true
			}
			if len(out.Items) == limit {
				out.Truncated = true
				return false
			}
			out.Items = append(out.Items, flowOf(t, f, names, now))
			return true
		})
	})
	return out, err
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return api.DefaultFlows, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > api.MaxFlows {
		return 0, badQuestion("limit %q: say a number from 1 to %d", text, api.MaxFlows)
	}
	return n, nil
}

// walk opens the flow table for one look through it; at most maxWalks at a time.
func (s *Server) walk(ctx context.Context, look func(t FlowTable, now uint32)) error {
	select {
	case s.walks <- struct{}{}:
		defer func() { <-s.walks }()
	case <-ctx.Done():
		return ctx.Err()
	}
	t, err := s.node.Flows()
	if err != nil {
		return err
	}
	defer t.Close()
	look(t, conntrack.Tick(monotonic()))
	return nil
}

func flowOf(t FlowTable, f *conntrack.Flow, n names, now uint32) api.Flow {
	var back conntrack.Flow
	if !t.Peer(f, &back) {
		back = conntrack.Flow{LastSeen: f.LastSeen}
	}
	out := api.Flow{
		Protocol: model.Protocol(f.Protocol).String(), Network: uint32(f.Network),
		Client:   addrPort(f.Src, f.SrcPort),
		Frontend: addrPort(f.Dst, f.DstPort),
		Backend:  addrPort(f.Rewrite.Dst, f.Rewrite.DstPort),
		Service:  n.services[frontendOf(f)],
		Pod:      n.pods[backendTarget(f)],
		State:    stateOf(f, &back), Mode: modeOf(f.Mode), Delivery: deliveryOf(f).String(),
		Hairpin: f.Flags&conntrack.FlagHairpin != 0, Outside: f.Flags&conntrack.FlagOutside != 0,
		Idle: idle(f, &back, now).Seconds(),
	}
	if f.Rewrite.Src != f.Src || f.Rewrite.SrcPort != f.SrcPort {
		out.Source = addrPort(f.Rewrite.Src, f.Rewrite.SrcPort)
	}
	return out
}

func addrPort(a packet.Addr, port uint16) string { return netip.AddrPortFrom(a.Netip(), port).String() }

// stateOf names the state of a flow: of TCP by the bits of both directions, of others by
// whether an answer was seen.
func stateOf(f, back *conntrack.Flow) string {
	switch {
	case f.Protocol == packet.ProtocolTCP:
		return conntrack.TCPState(f.State, back.State).String()
	case back.State&conntrack.StateSeen != 0:
		return "assured"
	}
	return "new"
}

func modeOf(m conntrack.Mode) string {
	switch m {
	case conntrack.ModeLane:
		return "lane"
	case conntrack.ModePass:
		return "pass"
	}
	return "go"
}

func deliveryOf(f *conntrack.Flow) model.Delivery {
	if f.Flags&conntrack.FlagStack != 0 {
		return model.Stack
	}
	return model.Direct
}

// idle is the time since the last packet of either direction. Another CPU's clock may be
// a little ahead.
func idle(f, back *conntrack.Flow, now uint32) time.Duration {
	last := min(int32(now-f.LastSeen), int32(now-back.LastSeen))
	return time.Duration(max(last, 0)) << conntrack.TickShift
}

// names finds what people call the addresses of flows.
type names struct {
	services map[target]string
	pods     map[target]string
}

func namesOf(state *publish.State) names {
	n := names{services: make(map[target]string), pods: make(map[target]string)}
	if state == nil {
		return n
	}
	for _, svc := range state.Services {
		for i := range svc.Ports {
			n.add(svc, &svc.Ports[i], state.Lost)
		}
	}
	return n
}

func (n *names) add(svc *model.Service, p *model.ServicePort, lost model.Lost) {
	network := uint32(svc.Network)
	for _, f := range p.Frontends {
		if _, others := lost[placeOf(svc, &f)]; others {
			continue
		}
		n.services[target{network, netip.AddrPortFrom(f.Addr, f.Port), uint8(f.Protocol)}] = svc.Name.String()
	}
	for _, c := range p.Families {
		for i := range c.Endpoints {
			e := &c.Endpoints[i]
			n.pods[target{network, netip.AddrPortFrom(e.Addr, e.Port), uint8(p.Protocol)}] = e.Pod
		}
	}
}

// loadAge is how old a count of flows by backend may be: a screen that is repainted
// every second must not walk the table for each of its lines.
const loadAge = time.Second

// load is the last count of flows by backend.
type load struct {
	mu    sync.Mutex
	at    time.Time
	flows map[target]uint64
}

// closed reports whether a flow is the tombstone of a TCP connection, which stands for a
// while so that late packets are not taken for a new one. back is room for the other
// direction, so that a walk allocates it once.
func closed(t FlowTable, f, back *conntrack.Flow) bool {
	return f.Protocol == packet.ProtocolTCP && t.Peer(f, back) &&
		conntrack.TCPState(f.State, back.State) == conntrack.Closed
}

// flowsByBackend counts the registered flows that are not closed. Without a flow table there are none: the
// rest of the answer is still worth having.
func (s *Server) flowsByBackend(ctx context.Context) (map[target]uint64, error) {
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	if time.Since(s.load.at) < loadAge {
		return s.load.flows, nil
	}
	counted := make(map[target]uint64)
	var back conntrack.Flow
	err := s.walk(ctx, func(t FlowTable, _ uint32) {
		t.Range(func(f *conntrack.Flow) bool {
			if !closed(t, f, &back) {
				counted[backendTarget(f)]++
			}
			return true
		})
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		s.log.Debug("flows cannot be counted", "error", err)
	}
	s.load.at, s.load.flows = time.Now(), counted
	return counted, nil
}
