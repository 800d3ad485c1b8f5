//go:build cluster

package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/control/model"
)

// migration is a cluster whose nodes change from kube-proxy to Lace and back.
type migration struct {
	*world
	service *corev1.Service
	flows   []*opened
	calls   []*calling
	changes []change
}

// change is a time in which connections change hands.
type change struct{ from, to time.Time }

// opened is a long flow of one origin over one protocol.
type opened struct {
	from, network string
	*lab.Stream
}

// calling makes new connections from one origin, over and over.
type calling struct {
	from string
	*lab.Attempts
}

// origins of every kind: pods of both nodes, the node itself, and a client outside, which
// calls the node port.
var everybody = []string{"shopper", "visitor", "n1", lab.OutsideName}

// pods' and outside clients' packets meet Lace before the node's own rules; those of the
// node's processes after them.
var metFirst = []string{"shopper", "visitor", lab.OutsideName}

func (m *migration) to(from string, port int) netip.AddrPort {
	if from == lab.OutsideName {
		return netip.AddrPortFrom(m.Node("n1").Addr4, uint16(m.service.Spec.Ports[port].NodePort))
	}
	return netip.AddrPortFrom(netip.MustParseAddr(m.service.Spec.ClusterIP), 80)
}

// flowsPerOrigin is how many flows of a protocol each origin opens.
const flowsPerOrigin = 6

// open opens long flows of both protocols from everybody, in place of those that were open.
func (m *migration) open() {
	m.t.Helper()
	for _, f := range m.flows {
		_, err := f.Stop(m.t.Context())
		m.must(err)
	}
	m.flows = nil
	for _, from := range everybody {
		h, err := m.Host(from)
		m.must(err)
		for port, network := range []string{"tcp", "udp"} {
			for range flowsPerOrigin {
				s, err := h.StartStream(m.t.Context(), traffic.Stream{
					Request: traffic.Request{Network: network, To: m.to(from, port), Timeout: patience}, Every: 20 * time.Millisecond,
				})
				m.must(err)
				m.flows = append(m.flows, &opened{from, network, s})
			}
		}
	}
}

func (m *migration) progress(o *opened) traffic.Progress {
	m.t.Helper()
	p, err := o.Progress(m.t.Context())
	m.must(err)
	return p
}

// each waits until something holds for each flow of some origins over a protocol; no
// origins, or no protocol: of all. turns are those since each was called.
func (m *migration) each(from []string, network, what string, holds func(p traffic.Progress, turns int) error) {
	m.t.Helper()
	before := map[*opened]int{}
	for _, o := range m.flows {
		if (from == nil || slices.Contains(from, o.from)) && (network == "" || network == o.network) {
			before[o] = m.progress(o).Turns
		}
	}
	if len(before) == 0 {
		m.t.Fatalf("there is no flow of %q over %q", from, network)
	}
	for o, turns := range before {
		m.eventually(fmt.Sprintf("a flow of %s over %s %s", o.from, o.network, what), func() error {
			p := m.progress(o)
			err := holds(p, p.Turns-turns)
			if errors.Is(err, errBroken) {
				m.t.Fatalf("a flow of %s over %s: %v", o.from, o.network, err)
			}
			return err
		})
	}
}

// errBroken is how a flow may not end.
var errBroken = errors.New("broken")

func broken(p traffic.Progress) error { return fmt.Errorf("%w: %s", errBroken, p.First) }

// aFew turns after a change: the flow goes on.
const aFew = 10

var errWaits = errors.New("it waits")

// goOn waits until flows have gone on unbroken.
func (m *migration) goOn(from []string) {
	m.t.Helper()
	m.each(from, "", "goes on", func(p traffic.Progress, turns int) error {
		if p.Broken > 0 {
			return broken(p)
		}
		return goesOn(turns)
	})
}

func goesOn(turns int) error {
	if turns < aFew {
		return errWaits
	}
	return nil
}

// isReset says whether a connection was reset. The kernel tells that once, to whoever of
// writer and reader asks first; a reader who asks second sees the end of the stream, which
// the lab's servers never send by themselves.
func isReset(p traffic.Progress) bool {
	return strings.Contains(p.First, "connection reset by peer") || strings.HasSuffix(p.First, ": EOF")
}

// reset waits until TCP connections were reset.
func (m *migration) reset(from []string) {
	m.t.Helper()
	m.each(from, "tcp", "is reset", func(p traffic.Progress, turns int) error {
		switch {
		case p.Broken == 0:
			return fmt.Errorf("%d turns", turns)
		case !isReset(p):
			return broken(p)
		}
		return nil
	})
}

// resetOrOn waits until each TCP connection was reset or has gone on.
func (m *migration) resetOrOn() {
	m.t.Helper()
	m.each(nil, "tcp", "is reset or goes on", func(p traffic.Progress, turns int) error {
		switch {
		case p.Broken == 0:
			return goesOn(turns)
		case !isReset(p):
			return broken(p)
		}
		return nil
	})
}

// carriedOn waits until UDP flows have answers again: from the endpoint they had, or from
// another one, which ends the flow as the test sees it.
func (m *migration) carriedOn(from []string) {
	m.t.Helper()
	m.each(from, "udp", "is answered", func(p traffic.Progress, turns int) error {
		switch {
		case p.Broken == 0:
			return goesOn(turns)
		case !strings.Contains(p.First, "moved from"):
			return broken(p)
		}
		return nil
	})
}

// call makes new connections from everybody until answered is called.
func (m *migration) call() {
	m.t.Helper()
	for _, from := range everybody {
		h, err := m.Host(from)
		m.must(err)
		a, err := h.StartAttempts(m.t.Context(), traffic.Burst{
			Request: traffic.Request{Network: "tcp", To: m.to(from, 0), Bytes: 100, Timeout: 20 * time.Second}, Parallel: 1000, Every: 20 * time.Millisecond,
		})
		m.must(err)
		m.calls = append(m.calls, &calling{from, a})
	}
}

// hands is a change of hands, carried out by f.
func (m *migration) hands(f func()) {
	begin := time.Now()
	f()
	m.changes = append(m.changes, change{begin, time.Now()})
}

// caught says whether a connection was open while connections changed hands: it fares as
// those that were made before.
func (m *migration) caught(a traffic.Answer) bool {
	open := a.Outcome == traffic.Reset || a.Outcome == traffic.Closed || a.Outcome == traffic.Timeout && !strings.HasPrefix(a.Error, "dial")
	for _, c := range m.changes {
		if open && a.Start.Before(c.to) && a.Start.Add(a.Took).After(c.from) {
			return true
		}
	}
	return false
}

// answered stops the calls, each of which must have been answered, but for the few that were
// caught open by a change.
func (m *migration) answered() {
	m.t.Helper()
	for _, c := range m.calls {
		answers, err := c.Stop(m.t.Context())
		m.must(err)
		var sum traffic.Tally
		caught := 0
		for _, a := range answers {
			if m.caught(a) {
				caught++
				continue
			}
			sum.Add(a)
		}
		if sum.Attempts < 10 || sum.Failed() > 0 || caught > sum.Attempts/10 {
			m.t.Errorf("new connections of %s: %d of %d failed, and %d were caught open: %s", c.from, sum.Failed(), sum.Attempts, caught, sum.First)
		}
		m.t.Logf("new connections of %s: %d answered, %d caught open by %d changes, slowest after %s", c.from, sum.Attempts, caught, len(m.changes), sum.Slowest.Round(time.Millisecond))
	}
	m.calls, m.changes = nil, nil
}

// noFlow counts what the nodes have answered with a reset, since no flow was registered.
func (m *migration) noFlow() (n uint64) {
	m.t.Helper()
	for _, node := range m.Nodes() {
		admin := node.Admin()
		defer admin.Close()
		drops, err := admin.Drops(m.t.Context())
		m.must(err)
		for _, d := range drops.Items {
			if d.Reason == "no-flow" {
				n += d.Packets
			}
		}
	}
	return n
}

// laid says whether kube-proxy's rules on a node know the Service.
func (m *migration) laid(n *lab.Node) error {
	out, err := runIn(m.t.Context(), n.PID(), "nft", "list", "map", "ip", "kube-proxy", "service-ips")
	if err == nil && !strings.Contains(out, m.service.Spec.ClusterIP+" ") {
		err = errors.New("they do not know the Service")
	}
	return err
}

// refused starts an agent that does not go on, and says why.
func (m *migration) refused(n *lab.Node, why string) {
	m.t.Helper()
	_, err := m.StartAgentWith(m.t.Context(), n, AgentUser, AgentOptions{Delivery: model.Stack})
	m.must(err)
	m.eventually("the agent ends and says "+why, func() error {
		b, err := os.ReadFile(m.Log(n.Host, roleAgent))
		if err != nil || !strings.Contains(string(b), why) || !strings.Contains(string(b), "replace-kube-proxy.md") {
			return fmt.Errorf("%w: it says %q", err, b)
		}
		if err := m.SignalProgram(m.t.Context(), n.Host, roleAgent, 0); err != nil && !strings.Contains(err.Error(), "does not run") {
			return err
		}
		return nil
	})
	if _, err := os.Stat(n.StatePath("snapshot")); err == nil {
		m.t.Error("an agent that was refused has published")
	}
}

// aheadOfCall is the port of a call of the node's whose answer is tracked before the call is.
const aheadOfCall = 45000

// answeredAhead opens a flow of the node's that the kernel tracks as one that the Service
// began. That happens to whichever answer is under way when the node's first rule that asks
// for tracking is laid; here the entry is made by hand, so that there is one in every run.
func (m *migration) answeredAhead(n *lab.Node) {
	m.t.Helper()
	to := m.to(n.Name, 1)
	_, err := runIn(m.t.Context(), n.PID(), "conntrack", "-I", "-p", "udp", "-t", "120",
		"-s", to.Addr().String(), "--sport", strconv.Itoa(int(to.Port())), "-d", n.Addr4.String(), "--dport", strconv.Itoa(aheadOfCall))
	m.must(err)
	s, err := n.StartStream(m.t.Context(), traffic.Stream{
		Request: traffic.Request{Network: "udp", From: netip.AddrPortFrom(n.Addr4, aheadOfCall), To: to, Timeout: patience}, Every: 20 * time.Millisecond,
	})
	m.must(err)
	m.flows = append(m.flows, &opened{n.Name, "udp", s})
}

// forget deletes what the kernel tracks between a node and Services, whoever began. The
// program ends with 1 where there is nothing to delete.
func (m *migration) forget(n *lab.Node) {
	m.t.Helper()
	for i, family := range []string{"ipv4", "ipv6"} {
		node, services := []netip.Addr{n.Addr4, n.Addr6}[i].String(), lab.ServiceRanges[i].String()
		for _, way := range [][2]string{{node, services}, {services, node}} {
			out, err := runIn(m.t.Context(), n.PID(), "conntrack", "-D", "-f", family, "--orig-src", way[0], "--orig-dst", way[1])
			if err != nil && !strings.Contains(out, " 0 flow entries have been deleted") {
				m.t.Fatal(err)
			}
		}
	}
}

// parts runs one part after another; what follows builds on it.
func (w *world) parts() func(name string, f func()) {
	t := w.t.(*testing.T)
	return func(name string, f func()) {
		t.Helper()
		ok := t.Run(name, func(t *testing.T) { w.t = t; f() })
		if w.t = t; !ok {
			t.FailNow()
		}
	}
}

// trace is what Lace has left on a node; nil: nothing.
func (w *world) trace(n *lab.Node) error {
	for _, command := range []string{"ip -o link show", "ip -o -4 route show table all", "ip -o -6 route show table all", "ip -o rule show"} {
		words := strings.Fields(command)
		out, err := runIn(w.t.Context(), n.PID(), words[0], words[1:]...)
		if err != nil {
			return err
		}
		for _, mark := range []string{"lace", "10.96.0.0/16", "fd00:10:96::", "169.254.76.0/22"} {
			if strings.Contains(out, mark) {
				return fmt.Errorf("%s: %s", command, out)
			}
		}
	}
	left, err := os.ReadDir(n.StatePath("."))
	if err != nil {
		return err
	}
	for _, e := range left {
		if e.Name() != "bpf" { // where the node's BPF file system is mounted
			return fmt.Errorf("%s in the state directory", e.Name())
		}
	}
	if pins, err := os.ReadDir(n.StatePath("bpf/lace")); err == nil {
		return fmt.Errorf("%d folders of pins", len(pins))
	}
	return nil
}
