package netdev

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addresses implements Stack.
func (k *Kernel) Addresses() ([]Address, error) {
	all, err := dump("addresses", func() ([]netlink.Addr, error) {
		return k.routing.AddrList(nil, unix.AF_UNSPEC)
	})
	if err != nil {
		return nil, err
	}
	var out []Address
	for _, a := range all {
		ip := addrOf(a.IP)
		bits, _ := a.Mask.Size()
		if !ip.IsValid() {
			continue
		}
		out = append(out, Address{
			Device:    a.LinkIndex,
			Prefix:    netip.PrefixFrom(ip, bits),
			Scope:     Scope(a.Scope),
			Secondary: a.Flags&unix.IFA_F_SECONDARY != 0, // the bit means temporary for IPv6
			Tentative: a.Flags&unix.IFA_F_TENTATIVE != 0,
		})
	}
	slices.SortStableFunc(out, func(a, b Address) int { return cmp.Compare(a.Device, b.Device) })
	return out, nil
}

// unusable are the states in which an entry names no MAC address to go by.
const unusable = unix.NUD_NONE | unix.NUD_INCOMPLETE | unix.NUD_FAILED

// Neighbours implements Stack.
func (k *Kernel) Neighbours() ([]Neighbour, error) {
	var out []Neighbour
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := k.entries("neighbours", family)
		if err != nil {
			return nil, err
		}
		for _, n := range all {
			if n.State == 0 || n.State&unusable != 0 || n.Flags&unix.NTF_PROXY != 0 {
				continue
			}
			out = append(out, Neighbour{
				Device:    n.LinkIndex,
				Addr:      addrOf(n.IP),
				MAC:       macOf(n.HardwareAddr),
				Permanent: n.State&unix.NUD_PERMANENT != 0,
			})
		}
	}
	slices.SortFunc(out, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), a.Addr.Compare(b.Addr))
	})
	return out, nil
}

// Stations implements Stack.
func (k *Kernel) Stations() ([]Station, error) {
	all, err := k.entries("bridge stations", unix.AF_BRIDGE)
	if err != nil {
		return nil, err
	}
	seen := make(map[Station]bool)
	var out []Station
	for _, n := range all {
		s := Station{Bridge: n.MasterIndex, Port: n.LinkIndex, MAC: macOf(n.HardwareAddr)}
		// A permanent entry is the bridge's own address on that port, and the same
		// station may be listed once per VLAN.
		if s.Bridge == 0 || n.State&unix.NUD_PERMANENT != 0 || seen[s] {
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Station) int {
		return cmp.Or(cmp.Compare(a.Bridge, b.Bridge), slices.Compare(a.MAC[:], b.MAC[:]), cmp.Compare(a.Port, b.Port))
	})
	return out, nil
}

func (k *Kernel) entries(what string, family uint8) ([]netlink.Neigh, error) {
	return dump(what, func() ([]netlink.Neigh, error) {
		return k.routing.NeighListExecute(netlink.Ndmsg{Family: family})
	})
}
