package lab

import (
	"context"
	"net/netip"

	"lace-cni.io/lace/bench/lab/traffic"
)

// Host is one member of the lab's network: a pod, a node or the outside client. Its
// methods act inside its namespace and may be called from any goroutine.
type Host struct {
	Name  string
	Node  string     // name of the node it is on; empty for the outside client
	Addr4 netip.Addr // its own addresses
	Addr6 netip.Addr
	cell  *cell
}

// Addr is the host's address of family 4 or 6.
func (h *Host) Addr(family int) netip.Addr {
	if family == 6 {
		return h.Addr6
	}
	return h.Addr4
}

// PID of the process that holds the host's namespaces, as the lab's owner sees it.
func (h *Host) PID() int { return h.cell.pid() }

// Listen starts an echo server for TCP and UDP that answers with the host's name, on the
// host's addresses of both families. The servers end with the host, or with Unlisten.
func (h *Host) Listen(ctx context.Context, port uint16) error {
	for _, a := range []netip.Addr{h.Addr4, h.Addr6} {
		var bound netip.AddrPort
		args := ListenArgs{Name: h.Name, Addr: netip.AddrPortFrom(a, port)}
		if err := h.cell.call(ctx, "Cell.Listen", args, &bound); err != nil {
			return err
		}
	}
	return nil
}

// Unlisten ends the servers on a port; their open connections are reset.
func (h *Host) Unlisten(ctx context.Context, port uint16) error {
	for _, a := range []netip.Addr{h.Addr4, h.Addr6} {
		if err := h.cell.call(ctx, "Cell.Unlisten", netip.AddrPortFrom(a, port), &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// Lost is how many TCP segments the servers on a port had to send again.
func (h *Host) Lost(ctx context.Context, port uint16) (sum int, err error) {
	for _, a := range []netip.Addr{h.Addr4, h.Addr6} {
		var n int
		if err := h.cell.call(ctx, "Cell.Lost", netip.AddrPortFrom(a, port), &n); err != nil {
			return sum, err
		}
		sum += n
	}
	return sum, nil
}

// SetSysctls writes kernel parameters of the host's namespaces.
func (h *Host) SetSysctls(ctx context.Context, list ...Sysctl) error {
	return h.cell.call(ctx, "Cell.SetSysctls", list, &struct{}{})
}

// Dial makes one attempt. The error is about the lab, not about the attempt.
func (h *Host) Dial(ctx context.Context, r traffic.Request) (a traffic.Answer, err error) {
	err = h.cell.call(ctx, "Cell.Dial", r, &a)
	return a, err
}

// Burst makes many attempts and counts what became of them.
func (h *Host) Burst(ctx context.Context, b traffic.Burst) (t traffic.Tally, err error) {
	err = h.cell.call(ctx, "Cell.Burst", b, &t)
	return t, err
}

// Attempts are repeated until they are stopped.
type Attempts struct {
	host *Host
	id   int
}

// StartAttempts makes an attempt every b.Every until they are stopped.
func (h *Host) StartAttempts(ctx context.Context, b traffic.Burst) (*Attempts, error) {
	a := &Attempts{host: h}
	return a, h.cell.call(ctx, "Cell.StartAttempts", b, &a.id)
}

// Stop returns every answer, in the order in which the attempts ended.
func (a *Attempts) Stop(ctx context.Context) (answers []traffic.Answer, err error) {
	err = a.host.cell.call(ctx, "Cell.StopAttempts", a.id, &answers)
	return answers, err
}

// Stream is a set of long-lived flows of one host.
type Stream struct {
	host *Host
	id   int
}

// StartStream opens the flows; it fails when one of them cannot be opened.
func (h *Host) StartStream(ctx context.Context, s traffic.Stream) (*Stream, error) {
	out := &Stream{host: h}
	return out, h.cell.call(ctx, "Cell.StartStream", s, &out.id)
}

// Progress is the state of the stream now.
func (s *Stream) Progress(ctx context.Context) (p traffic.Progress, err error) {
	err = s.host.cell.call(ctx, "Cell.StreamProgress", s.id, &p)
	return p, err
}

// Stop closes the flows and returns the final state.
func (s *Stream) Stop(ctx context.Context) (p traffic.Progress, err error) {
	err = s.host.cell.call(ctx, "Cell.StopStream", s.id, &p)
	return p, err
}
