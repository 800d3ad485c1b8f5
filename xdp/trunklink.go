package xdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Mode of XDP on the trunk.
type Mode string

const (
	Native  Mode = "native"  // in the driver, before a packet becomes an sk_buff
	Generic Mode = "generic" // behind it: slower, no other difference
)

// Names of the trunk's links; those of ports begin with a digit.
const (
	linkToGo     = "lace1-xdp"
	linkFromGo   = "lace0-in"
	linkFromHost = "lace0-out"
)

var trunkLinks = []string{linkToGo, linkFromGo, linkFromHost}

// AttachTrunk attaches the trunk's programs, receiver first, and tells the claim programs
// where to send what they claim. Links of an earlier process are updated in place.
func (o *Objects) AttachTrunk(t *Trunk) error {
	if err := o.attachToGo(t); err != nil {
		return err
	}
	for _, h := range []hook{
		{linkFromGo, t.Lace0, o.bpf.FromGo, ebpf.AttachTCXIngress},
		{linkFromHost, t.Lace0, o.bpf.FromHost, ebpf.AttachTCXEgress},
	} {
		if err := o.attachTCX(h); err != nil {
			return err
		}
	}
	s := o.settings
	s.Trunk, s.Queues, s.MTU, s.MAC = uint32(t.Lace0), uint32(t.Queues), uint32(t.MTU), t.MAC
	return o.set(s)
}

func (o *Objects) attachToGo(t *Trunk) error {
	h := hook{linkToGo, t.Lace1, o.bpf.ToGo, ebpf.AttachXDP}
	return t.Do(func() error {
		if err := o.attached(h, func() (link.Link, error) { return o.attachXDP(t.Lace1, t.MTU) }); err != nil {
			return err
		}
		mode, err := xdpMode(t.Lace1)
		o.mode = mode
		return err
	})
}

// attachXDP tries the driver first and falls back to the generic hook, never silently.
func (o *Objects) attachXDP(ifindex, mtu int) (link.Link, error) {
	l, err := link.AttachXDP(link.XDPOptions{Program: o.bpf.ToGo, Interface: ifindex, Flags: link.XDPDriverMode})
	if err == nil {
		return l, nil
	}
	if errors.Is(err, unix.ERANGE) {
		return nil, fmt.Errorf("XDP on the trunk: MTU %d is too large for one page per frame (at most about %d); give pods and uplinks a smaller one: %w", mtu, MaxTrunkMTU, err)
	}
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return nil, fmt.Errorf("XDP on the trunk: %w", err)
	}
	o.log.Warn("no native XDP on the trunk, using the generic hook", "device", "lace1", "why", err)
	l, err = link.AttachXDP(link.XDPOptions{Program: o.bpf.ToGo, Interface: ifindex, Flags: link.XDPGenericMode})
	if err != nil {
		return nil, fmt.Errorf("generic XDP on the trunk: %w", err)
	}
	return l, nil
}

// xdpMode asks the device, for a link that was taken over does not tell.
func xdpMode(ifindex int) (Mode, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return "", fmt.Errorf("XDP mode of lace1: %w", err)
	}
	x := l.Attrs().Xdp
	switch {
	case x != nil && x.AttachMode == nl.XDP_ATTACHED_DRV:
		return Native, nil
	case x != nil && x.AttachMode == nl.XDP_ATTACHED_SKB:
		return Generic, nil
	}
	return "", fmt.Errorf("lace1 has no XDP program although it was attached")
}

// Mode of XDP on the trunk, after AttachTrunk.
func (o *Objects) Mode() Mode { return o.mode }
