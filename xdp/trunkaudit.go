package xdp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrTrunkGone: a device of the trunk is not there any more. Close everything, and open
// again.
var ErrTrunkGone = errors.New("the trunk is gone")

// Audit looks whether the trunk is as OpenTrunk left it, and puts right what is not: a
// device that was set down or got another MTU or address, an offload that was switched, a
// mount that was taken away. It must run in the node's network namespace.
//
// Seven system calls when all is well.
func (t *Trunk) Audit() error {
	outer, err := netlink.LinkByIndex(t.Lace0)
	if err != nil {
		return gone(lace0, err)
	}
	inner, err := t.inside.LinkByIndex(t.Lace1)
	if err != nil {
		return gone(lace1, err)
	}
	return errors.Join(
		t.auditDevice(outer, lace0, lace0MAC, t.offloads, t.setUpLace0),
		t.auditDevice(inner, lace1, lace1MAC, nil, t.setUpLace1),
		t.auditMount())
}

func gone(name string, err error) error {
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return fmt.Errorf("device %s: %w: %w", name, ErrTrunkGone, err)
	}
	return fmt.Errorf("device %s: %w", name, err)
}

// auditDevice sets one end as it has to be, if it differs.
func (t *Trunk) auditDevice(l netlink.Link, name string, mac [6]byte, more func() string, setUp func() error) error {
	wrong := differs(l.Attrs(), name, mac, t.MTU)
	if wrong == "" && more != nil {
		wrong = more()
	}
	if wrong == "" {
		return nil
	}
	err := t.restore(l, name, mac)
	if err == nil {
		err = setUp()
	}
	if err != nil {
		return fmt.Errorf("%s, which cannot be mended: %w", wrong, err)
	}
	t.repaired.tell(PartTrunk, wrong)
	return nil
}

// differs says what of a device is not as it was left; empty: nothing.
func differs(a *netlink.LinkAttrs, name string, mac [6]byte, mtu int) string {
	switch {
	case a.Name != name:
		return fmt.Sprintf("%s was renamed to %s", name, a.Name)
	case a.Flags&net.FlagUp == 0:
		return name + " was set down"
	case a.MTU != mtu:
		return fmt.Sprintf("the MTU of %s was set to %d", name, a.MTU)
	case string(a.HardwareAddr) != string(mac[:]):
		return fmt.Sprintf("the address of %s was set to %s", name, a.HardwareAddr)
	case a.RawFlags&unix.IFF_NOARP == 0:
		return "ARP was switched on for " + name
	}
	return ""
}

// restore does what opening a trunk does not: name and address were given when it was made.
func (t *Trunk) restore(l netlink.Link, name string, mac [6]byte) error {
	h := t.inside
	if name == lace0 {
		outside, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer outside.Close()
		h = outside
	}
	if a := l.Attrs(); a.Name != name {
		if err := h.LinkSetName(l, name); err != nil {
			return fmt.Errorf("renaming: %w", err)
		}
	}
	if string(l.Attrs().HardwareAddr) != string(mac[:]) {
		if err := h.LinkSetHardwareAddr(l, mac[:]); err != nil {
			return fmt.Errorf("setting the address: %w", err)
		}
	}
	return nil
}

// offloads says which switch of lace0 is not as it was left.
func (t *Trunk) offloads() string {
	for _, s := range []struct {
		what string
		get  uint32
		want uint32
	}{{"transmit checksum offload", getTxChecksum, 0}, {"receive offload (GRO)", getGRO, 1}} {
		if have, err := ethtool(lace0, ethtoolValue{cmd: s.get}); err == nil && have != s.want {
			return fmt.Sprintf("%s of %s was switched to %d", s.what, lace0, have)
		}
	}
	rp, err := os.ReadFile("/proc/sys/net/ipv4/conf/lace0/rp_filter")
	if err == nil && strings.TrimSpace(string(rp)) != "0" {
		return "rp_filter of lace0 was set to " + strings.TrimSpace(string(rp))
	}
	return ""
}

// auditMount mounts the namespace again where it was mounted.
func (t *Trunk) auditMount() error {
	there, err := os.Stat(t.ns.path)
	ours, e := t.ns.file.Stat()
	if e != nil {
		return e
	}
	if err == nil && os.SameFile(there, ours) {
		return nil
	}
	if err := t.ns.mount(); err != nil {
		return fmt.Errorf("%s was unmounted and cannot be mounted again: %w", t.ns.path, err)
	}
	t.repaired.tell(PartNamespace, t.ns.path+" was unmounted")
	return nil
}

// mount puts the namespace at its path again, in place of whatever is there.
func (n *namespace) mount() error {
	if err := dismount(n.path); err != nil {
		return err
	}
	f, err := os.OpenFile(n.path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", n.file.Fd()), n.path, "none", unix.MS_BIND, "")
}
