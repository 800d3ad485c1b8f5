package agent

import (
	"context"
	"fmt"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/hostport"
	"lace-cni.io/lace/slowpath/publish"
)

// portsEvery is how often the node's own sockets are looked at.
const portsEvery = 5 * time.Second

// portWatch finds node ports that a process of the node listens on too, and keeps the range
// of source ports, and node ports, from being given to processes.
type portWatch struct {
	proc     string
	node     string
	reserved hostport.Reservation
	span     hostport.Span
	standing standing
}

func newPortWatch(c *Config) *portWatch {
	return &portWatch{
		proc: "/proc/thread-self/net", node: c.NodeName, reserved: c.reservation(),
		span: hostport.Span{First: c.Settings.SourcePortFirst, Last: c.Settings.SourcePortLast},
	}
}

// reservation is that of source ports.
func (c *Config) reservation() hostport.Reservation {
	return hostport.Reservation{Sys: "/proc/sys/net/ipv4", Record: c.path("reserved-ports"), Amiss: func(err error) {
		c.Log.Warn("the note of reserved ports is not as it was left, and is written anew", "err", err)
	}}
}

// run looks every few seconds until ctx ends.
func (w *portWatch) run(ctx context.Context, state func() *publish.State) error {
	return w.standing.keep(ctx, portsEvery, func() []model.Problem { return w.look(state()) })
}

// found are the Problems of the last look.
func (w *portWatch) found() []model.Problem {
	if w == nil {
		return nil
	}
	return w.standing.found()
}

func (w *portWatch) look(s *publish.State) (out []model.Problem) {
	if _, err := w.reserved.Reserve(w.span); err != nil && w.span.First != 0 {
		out = append(out, model.Problem{Kind: "Node", Object: w.node, Reason: "SourcePortsNotReserved", Message: fmt.Sprintf(
			"processes of the node may get source ports %s, which Lace uses for connections that it passes on to other nodes: %v; add them to net.ipv4.ip_local_reserved_ports", w.span, err)})
	}
	if s == nil || len(s.Node.NodePorts) == 0 {
		return out
	}
	all := nodePorts(s)
	if len(all) == 0 {
		return out
	}
	if _, err := w.reserved.Reserve(all...); err != nil {
		out = append(out, model.Problem{Kind: "Node", Object: w.node, Reason: "NodePortsNotReserved", Message: fmt.Sprintf(
			"connections of the node's own processes that get a node port as their source port get no answers, and which they get could not be set: %v; keep node ports out of net.ipv4.ip_local_port_range, or add them to net.ipv4.ip_local_reserved_ports", err)})
	}
	listening, err := hostport.Listening(w.proc)
	if err != nil {
		return append(out, model.Problem{Kind: "Node", Object: w.node, Reason: "SocketsUnreadable", Message: fmt.Sprintf("whether processes listen on node ports is not known: %v", err)})
	}
	for _, svc := range s.Services { // whether the agent has got these is told where it listens
		delete(listening, hostport.Port{Protocol: model.TCP, Number: svc.HealthPort})
	}
	for _, svc := range s.Services {
		out = append(out, shared(svc, s.Lost, listening)...)
	}
	return out
}

// nodePorts are all that Services have here.
func nodePorts(s *publish.State) (out []hostport.Span) {
	for _, svc := range s.Services {
		for i := range svc.Ports {
			for _, f := range svc.Ports[i].Frontends {
				if f.Kind == model.NodePort {
					out = append(out, hostport.Span{First: f.Port, Last: f.Port})
					break
				}
			}
		}
	}
	return out
}

// shared names the node ports of a Service that a process listens on, each once; what the
// Service does not have is left out.
func shared(s *model.Service, lost model.Lost, listening map[hostport.Port]bool) (out []model.Problem) {
	for i := range s.Ports {
		for _, f := range s.Ports[i].Frontends {
			if f.Kind != model.NodePort || !listening[hostport.Port{Protocol: f.Protocol, Number: f.Port}] {
				continue
			}
			if _, gone := lost[model.Place{Service: s.Name, Network: s.Network, Addr: f.Addr, Port: f.Port, Protocol: f.Protocol}]; gone {
				continue
			}
			out = append(out, model.Problem{Kind: "Service", Object: s.Name.String(), Field: fmt.Sprintf("spec.ports[%d].nodePort", i), Reason: "PortInUse", Message: fmt.Sprintf(
				"a process of this node listens on %d/%s too: what comes from pods, the network and other processes goes to the Service, and the process keeps what is sent to loopback addresses; stop it, or give the Service another node port", f.Port, f.Protocol)})
			break
		}
	}
	return out
}
