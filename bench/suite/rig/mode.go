// Package rig builds what is measured: a lab in which one mode carries the packets of
// services, with pods that serve, devices set alike in every mode, and as many services as
// asked for.
//
// It owns the setting up of modes and the addresses of a measurement's two ends. One rig is
// one mode: all rigs of a run stand side by side, idle but for the one that is measured, so
// that nothing is torn down between rounds. It must never give one mode a device setting
// that the others lack, but where the mode cannot work without it; those are named here.
//
//   - xdp: pods' own devices have GRO on, for a veth takes redirected frames only so.
//
// Cost: some 150 MiB of memory for each rig, its flow tables aside.
package rig

import (
	"fmt"
	"slices"
	"strings"
)

// Kind of mode.
type Kind int

const (
	Lace Kind = iota
	Nft
	Iptables
	Ceiling
	Rings
	Direct
)

// Mode is what carries packets.
type Mode struct {
	Name     string
	Kind     Kind
	Lane     string // of Lace: on or off
	Workers  int    // of Lace
	Delivery string // of Lace: direct or stack; empty: direct
	What     string // for people
}

// Modes are all there are.
var Modes = []Mode{
	{Name: "lace", Kind: Lace, Lane: "on", Workers: 1, What: "Lace, the kernel repeats what Go decided"},
	{Name: "lace-w2", Kind: Lace, Lane: "on", Workers: 2, What: "the same with two workers"},
	{Name: "lace-stack", Kind: Lace, Lane: "on", Delivery: "stack", Workers: 1, What: "lace, and the kernel routes what was rewritten"},
	{Name: "lace-off", Kind: Lace, Lane: "off", Workers: 1, What: "Lace, every packet of a service goes through Go"},
	{Name: "lace-off-w2", Kind: Lace, Lane: "off", Workers: 2, What: "the same with two workers"},
	{Name: "nft", Kind: Nft, What: "the kernel, rules as of kube-proxy's nftables mode"},
	{Name: "iptables", Kind: Iptables, What: "the kernel, rules as of kube-proxy's iptables mode"},
	{Name: "xdp", Kind: Ceiling, What: "address translation in XDP and nothing else: the ceiling"},
	{Name: "asavie", Kind: Rings, Workers: 1, What: "lace-off on the rings of github.com/asavie/xdp"},
	{Name: "direct", Kind: Direct, What: "no service: clients know the pod's address"},
}

// Find a mode by name.
func Find(name string) (Mode, error) {
	i := slices.IndexFunc(Modes, func(m Mode) bool { return m.Name == name })
	if i < 0 {
		return Mode{}, fmt.Errorf("no mode %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return Modes[i], nil
}

// Names of all modes.
func Names() (out []string) {
	for _, m := range Modes {
		out = append(out, m.Name)
	}
	return out
}

// Takes reports whether the mode can have that many services.
func (m *Mode) Takes(services int) bool {
	switch m.Kind {
	case Direct, Ceiling, Rings:
		return services == 1
	}
	return true
}
