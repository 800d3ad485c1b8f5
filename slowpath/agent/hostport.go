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
// of source ports to Lace.
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
	return hostport.Reservation{Sys: "/proc/sys/net/ipv4", Record: c.path("reserved-ports")}
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
	listening, err := hostport.Listening(w.proc)
	if err != nil {
		return append(out, model.Problem{Kind: "Node", Object: w.node, Reason: "SocketsUnreadable", Message: fmt.Sprintf("whether processes listen on node ports is not known: %v", err)})
	}
	for _, svc := range s.Services {
		out = append(out, shared(svc, listening)...)
	}
	return out
}

// shared names the node ports of a Service that a process listens on, each once.
func shared(s *model.Service, listening map[hostport.Port]bool) (out []model.Problem) {
	for i := range s.Ports {
		for _, f := range s.Ports[i].Frontends {
			if f.Kind != model.NodePort || !listening[hostport.Port{Protocol: f.Protocol, Number: f.Port}] {
				continue
			}
			out = append(out, model.Problem{Kind: "Service", Object: s.Name.String(), Field: fmt.Sprintf("spec.ports[%d].nodePort", i), Reason: "PortInUse", Message: fmt.Sprintf(
				"a process of this node listens on %d/%s too: what comes from pods, the network and other processes goes to the Service, and the process keeps what is sent to loopback addresses; stop it, or give the Service another node port", f.Port, f.Protocol)})
			break
		}
	}
	return out
}
