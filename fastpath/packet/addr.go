package packet

import (
	"encoding/binary"
	"net/netip"
)

// Addr is an IP address of either family as 16 bytes in network order. IPv4 is
// held in its v4-mapped form (RFC 4291, section 2.5.5.2), so that one comparable,
// pointer-free type serves both families in every key.
type Addr [16]byte

// AddrFrom converts a netip address; a zone is dropped. The zero netip.Addr gives ::.
func AddrFrom(a netip.Addr) Addr {
	if !a.IsValid() {
		return Addr{}
	}
	return Addr(a.As16())
}

// Addr4 builds the v4-mapped form from four bytes in network order.
func Addr4(b [4]byte) (a Addr) {
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], b[:])
	return a
}

// Netip converts back; v4-mapped addresses come out as IPv4.
func (a Addr) Netip() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// Is4 reports whether a holds an IPv4 address.
func (a *Addr) Is4() bool {
	return binary.LittleEndian.Uint64(a[:8]) == 0 && binary.LittleEndian.Uint32(a[8:12]) == 0xffff0000
}

func (a Addr) String() string { return a.Netip().String() }

// Word returns 32-bit word i (0 to 3) as it lies in memory: network byte order
// loaded natively, the form in which BPF programs see it.
func (a *Addr) Word(i int) uint32 { return binary.LittleEndian.Uint32(a[4*i:]) }

// NetworkID names the network of a packet, Service or pod. 0 is the default
// network. It is part of every key of the fast path.
type NetworkID uint32

// MaxNetworkID is the largest id that fits in a flow key (22 bits).
const MaxNetworkID NetworkID = 1<<22 - 1
