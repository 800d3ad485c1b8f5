//go:build cluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/bench/oracle"
)

// expected is what must become of a packet.
type expected struct {
	class     oracle.Class
	endpoints []netip.AddrPort // when forwarded: these, and each of them
	reminded  bool             // the client comes back to one of them
	sees      func(to netip.AddrPort) []seen
}

// seen is what an endpoint may see as the client.
type seen string

const (
	kept     seen = "kept"
	thisNode seen = "this node"
	called   seen = "called"
	alias    seen = "the node's alias"
)

// of says whether that is how the address of a packet's client is seen.
func (s seen) of(p oracle.Packet, client netip.Addr) bool {
	switch s {
	case kept:
		return client == p.Source
	case called:
		return client == p.To.Addr()
	case thisNode:
		return slices.Contains(ofN1, client)
	case alias:
		return slices.ContainsFunc(aliases, func(a netip.Prefix) bool { return a.Contains(client) })
	}
	return false
}

// aliases are where docs/explanation/own-node-ports.md says they are.
var aliases = []netip.Prefix{netip.MustParsePrefix("169.254.76.0/22"), netip.MustParsePrefix("fd4c:6163:65:76::/64")}

// How long an answer is waited for: where none is expected, and where one is. Whoever is
// late is asked again.
const (
	silence = 700 * time.Millisecond
	answer  = 10 * time.Second
	again   = 3
)

// client is the host that sends a packet.
func (s *stage) client(p oracle.Packet) *lab.Host { return s.at(p.Source) }

// call sends the first packet of a flow of its own.
func (s *stage) call(ctx context.Context, p oracle.Packet, patience time.Duration) (traffic.Answer, error) {
	r := traffic.Request{Network: "tcp", To: p.To, From: netip.AddrPortFrom(p.Source, 0), Timeout: patience}
	if p.Protocol == corev1.ProtocolUDP {
		r.Network, r.Bytes = "udp", 8
	}
	return s.client(p).Dial(ctx, r)
}

// errDenied is what the node's own datagrams meet at rules of the kernel: both those that
// refuse and those that drop have them fail as they are sent.
var errDenied = errors.New("the kernel does not let the node send it")

// class is what became of a packet; to is who answered.
func class(p oracle.Packet, a traffic.Answer) (c oracle.Class, to netip.AddrPort, err error) {
	switch a.Outcome {
	case traffic.OK:
		to, err = netip.ParseAddrPort(a.Server)
		if to == p.To {
			return oracle.Pass, to, err
		}
		return oracle.Forward, to, err
	case traffic.Refused:
		return oracle.Refuse, to, nil
	case traffic.Timeout:
		return oracle.Drop, to, nil
	case traffic.Failed:
		if strings.Contains(a.Error, "operation not permitted") {
			return 0, to, errDenied
		}
	}
	return 0, to, fmt.Errorf("neither served, refused nor dropped: %s", a)
}

// wrong sends packets until it is plain that a stage does as expected, or how it does not.
func (s *stage) wrong(ctx context.Context, p oracle.Packet, want *expected) error {
	met := map[netip.AddrPort]int{}
	for tries := 0; ; tries++ {
		c, to, err := s.once(ctx, p, want, met)
		switch {
		case err != nil:
			return err
		case c != want.class && to.IsValid():
			return fmt.Errorf("%s, by %s", c, to)
		case c != want.class:
			return fmt.Errorf("%s", c)
		case c != oracle.Forward:
			return nil
		case !slices.Contains(want.endpoints, to):
			return fmt.Errorf("forwarded to %s, which may not be chosen", to)
		}
		met[to]++
		if want.reminded && len(met) > 1 {
			return fmt.Errorf("forwarded to several: %v", met)
		}
		if done, err := enough(met, tries+1, want); done || err != nil {
			return err
		}
	}
}

// once sends one packet. Where an answer is expected silence counts only when it repeats.
func (s *stage) once(ctx context.Context, p oracle.Packet, want *expected, met map[netip.AddrPort]int) (c oracle.Class, to netip.AddrPort, err error) {
	patience := answer
	if want.class == oracle.Drop {
		patience = silence
	}
	var a traffic.Answer
	for range again {
		if a, err = s.call(ctx, p, patience); err != nil {
			return 0, to, err
		}
		c, to, err = class(p, a)
		if s.rules && err == errDenied && p.From == oracle.Node && (want.class == oracle.Refuse || want.class == oracle.Drop) {
			return want.class, to, nil
		}
		if err != nil || c != oracle.Drop || want.class == oracle.Drop {
			break
		}
		s.t.Logf("silence for %s, asked again on the side of kube-proxy: %v: %s", patience, s.rules, text(p))
	}
	if err == nil && c == oracle.Forward && want.class == oracle.Forward && slices.Contains(want.endpoints, to) {
		err = seenRightly(p, a, want.sees(to))
	}
	return c, to, err
}

// enough says whether every endpoint was met, or that some never are: with this many tries
// for each, once in a thousand million times by mere chance.
func enough(met map[netip.AddrPort]int, tries int, want *expected) (bool, error) {
	const each = 25
	switch {
	case want.reminded:
		return tries >= 4, nil
	case len(met) == len(want.endpoints):
		return tries >= 2, nil
	case tries < each*len(want.endpoints):
		return false, nil
	}
	var never []string
	for _, e := range want.endpoints {
		if met[e] == 0 {
			never = append(never, e.String())
		}
	}
	return true, fmt.Errorf("in %d tries never forwarded to %s", tries, strings.Join(never, ", "))
}

// seenRightly says whether an endpoint saw the client as it may.
func seenRightly(p oracle.Packet, a traffic.Answer, may []seen) error {
	client := a.Client.Addr()
	if slices.ContainsFunc(may, func(m seen) bool { return m.of(p, client) }) {
		return nil
	}
	return fmt.Errorf("forwarded to %s, which sees %s as the client instead of %v", a.Server, client, may)
}
