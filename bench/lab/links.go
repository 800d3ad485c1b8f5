package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// veth joins two cells. MTU is that of plain Ethernet.
func veth(a *cell, aName string, aMAC net.HardwareAddr, b *cell, bName string, bMAC net.HardwareAddr) error {
	link := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: aName, HardwareAddr: aMAC, MTU: 1500},
		PeerName:         bName,
		PeerHardwareAddr: bMAC,
		PeerMTU:          1500,
		PeerNamespace:    netlink.NsFd(b.net),
	}
	if err := a.links.LinkAdd(link); err != nil {
		return fmt.Errorf("link %s of %s to %s of %s: %w", aName, a.name, bName, b.name, err)
	}
	return nil
}

// bridge makes a bridge in a cell. Ports forward at once: no spanning tree, no delay.
func bridge(c *cell, name string, mac net.HardwareAddr) error {
	b := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: mac}}
	if err := c.links.LinkAdd(b); err != nil {
		return fmt.Errorf("bridge %s of %s: %w", name, c.name, err)
	}
	return c.up(name)
}

func (c *cell) link(name string) (netlink.Link, error) {
	l, err := c.links.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%s: link %s: %w", c.name, name, err)
	}
	return l, nil
}

func (c *cell) up(name string) error {
	l, err := c.link(name)
	if err != nil {
		return err
	}
	if err := c.links.LinkSetUp(l); err != nil {
		return fmt.Errorf("%s: link %s up: %w", c.name, name, err)
	}
	return nil
}

// enslave makes a link a port of a bridge of the same cell.
func (c *cell) enslave(name, bridge string) error {
	l, err := c.link(name)
	if err != nil {
		return err
	}
	b, err := c.link(bridge)
	if err != nil {
		return err
	}
	if err := c.links.LinkSetMaster(l, b); err != nil {
		return fmt.Errorf("%s: %s into bridge %s: %w", c.name, name, bridge, err)
	}
	return nil
}

// address puts addresses on a link. Nobody else can have them here: duplicate address
// detection, which takes seconds, is left out.
func (c *cell) address(name string, list ...netip.Prefix) error {
	l, err := c.link(name)
	if err != nil {
		return err
	}
	for _, p := range list {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: ipNet(p).Mask}}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := c.links.AddrAdd(l, a); err != nil {
			return fmt.Errorf("%s: address %s on %s: %w", c.name, p, name, err)
		}
	}
	return nil
}

// route sends a prefix out of a link, through a gateway that is on that link whatever its
// address, or to neighbours on the link when via is the zero address.
func (c *cell) route(to netip.Prefix, via netip.Addr, name string) error {
	l, err := c.link(name)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(to), Family: unix.AF_INET}
	if to.Addr().Is6() {
		r.Family = unix.AF_INET6
	}
	if via.IsValid() {
		r.Gw = via.AsSlice()
		r.SetFlag(netlink.FLAG_ONLINK)
	} else {
		r.Scope = unix.RT_SCOPE_LINK
	}
	if err := c.links.RouteAdd(r); err != nil {
		return fmt.Errorf("%s: route to %s via %s on %s: %w", c.name, to, via, name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{
		IP:   p.Masked().Addr().AsSlice(),
		Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
	}
}

// mac builds a locally administered address that says whose it is when it turns up in a
// capture: the kind of link, the node, the host.
func mac(kind byte, node, host int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x1a, 0xce, kind, byte(node), byte(host)}
}

const (
	macWire   = 0x00 // an uplink
	macPod    = 0x0c // a pod's own
	macVeth   = 0x0a // node side of a pod's link
	macBridge = 0x0b
)
