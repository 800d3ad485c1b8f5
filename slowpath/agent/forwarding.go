package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/publish"
)

// forwardingEvery is how often the switches of forwarding are looked at. A look reads two
// files, and one for each port.
const forwardingEvery = 2 * time.Second

// forwardingWatch notices that the kernel does not forward packets, which delivery by the
// node's own stack lives by. It only tells: whether a node forwards is its owner's to say.
type forwardingWatch struct {
	sys      string // /proc/sys/net of the node's network
	node     string
	delivery model.Delivery
	standing standing
}

func newForwardingWatch(c *Config) *forwardingWatch {
	return &forwardingWatch{sys: "/proc/sys/net", node: c.NodeName, delivery: c.Delivery, standing: standing{changed: func() {}}}
}

// run looks every few seconds until ctx ends.
func (w *forwardingWatch) run(ctx context.Context, state func() *publish.State) error {
	if w.delivery != model.Stack {
		return nil // packets go past the node's stack
	}
	return w.standing.keep(ctx, forwardingEvery, func() []model.Problem { return w.look(state()) })
}

// found are the Problems of the last look.
func (w *forwardingWatch) found() []model.Problem {
	if w == nil {
		return nil
	}
	return w.standing.found()
}

// look judges the families that Services have. The kernel forwards IPv4 by the switch of the
// device where a packet comes in, which net.ipv4.ip_forward sets for all of them; IPv6 by one
// switch for all.
func (w *forwardingWatch) look(s *publish.State) (out []model.Problem) {
	if s == nil {
		return nil
	}
	four, six := familiesOf(s.Services)
	switch {
	case !four:
	case w.off("ipv4/ip_forward"):
		out = append(out, w.problem("net.ipv4.ip_forward is 0: the kernel does not forward IPv4", "net.ipv4.ip_forward"))
	default:
		out = append(out, w.devices(s.Attachments.Ports)...)
	}
	if six && w.off("ipv6/conf/all/forwarding") {
		out = append(out, w.problem("net.ipv6.conf.all.forwarding is 0: the kernel does not forward IPv6", "net.ipv6.conf.all.forwarding"))
	}
	return out
}

// namedDevices is how many devices one Problem names.
const namedDevices = 4

// devices finds ports whose own switch is off while that of the node is on.
func (w *forwardingWatch) devices(ports []model.Port) []model.Problem {
	var off []string
	for i := range ports {
		if p := &ports[i]; p.Kind != model.PortHost && w.off(filepath.Join("ipv4/conf", p.Device, "forwarding")) {
			off = append(off, p.Device)
		}
	}
	if len(off) == 0 {
		return nil
	}
	slices.Sort(off)
	more := ""
	if n := len(off) - namedDevices; n > 0 {
		off, more = off[:namedDevices], fmt.Sprintf(" and %d more", n)
	}
	return []model.Problem{w.problem(
		fmt.Sprintf("net.ipv4.conf.DEVICE.forwarding is 0 of %s%s: the kernel does not forward IPv4 that comes in there", strings.Join(off, ", "), more),
		"net.ipv4.conf."+off[0]+".forwarding")}
}

func (w *forwardingWatch) problem(what, sysctl string) model.Problem {
	return model.Problem{
		Kind: "Node", Object: w.node, Reason: "ForwardingOff",
		Message: fmt.Sprintf("%s, and packets between pods, the network and Services wait for that, as the node's own stack delivers them: sysctl -w %s=1, and write it to /etc/sysctl.d", what, sysctl),
	}
}

// off reports a switch that can be read and is 0. One that is not there is that of a device
// which has just gone, or of a family that the kernel lacks.
func (w *forwardingWatch) off(name string) bool {
	b, err := os.ReadFile(filepath.Join(w.sys, name))
	return err == nil && strings.TrimSpace(string(b)) == "0"
}

// familiesOf says which families Services have addresses of.
func familiesOf(services []*model.Service) (four, six bool) {
	for _, s := range services {
		for i := range s.Ports {
			for family := range s.Ports[i].Families {
				four, six = four || family == 4, six || family == 6
			}
		}
		if four && six {
			break
		}
	}
	return four, six
}
