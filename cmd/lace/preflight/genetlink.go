package preflight

import (
	"encoding/binary"
	"iter"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Numbers of linux/netdev.h (kernel 6.3 and later).
const (
	netdevDevGet      = 1
	netdevDevIndex    = 1
	netdevDevFeatures = 3

	xdpBasic    = 1 << 0
	xdpRedirect = 1 << 1
	xdpZeroCopy = 1 << 3
)

// asker asks one generic netlink family about devices; with no family, nothing is known.
type asker struct {
	family  uint16
	version uint8
}

func newAsker(name string) asker {
	f, err := netlink.GenlFamilyGet(name)
	if err != nil {
		return asker{}
	}
	return asker{f.ID, uint8(f.Version)}
}

// ask returns the attributes of the answers to one command.
func (a asker) ask(command uint8, attr *nl.RtAttr) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		if a.family == 0 {
			return
		}
		req := nl.NewNetlinkRequest(int(a.family), unix.NLM_F_ACK)
		req.AddData(&nl.Genlmsg{Command: command, Version: a.version})
		req.AddData(attr)
		answers, err := req.Execute(unix.NETLINK_GENERIC, 0)
		if err != nil {
			return
		}
		for _, m := range answers {
			for kind, value := range attributes(m[nl.SizeofGenlmsg:]) {
				if !yield(kind, value) {
					return
				}
			}
		}
	}
}

// attributes walks netlink attributes; it stops at the first broken one.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			size := int(binary.NativeEndian.Uint16(b))
			if size < unix.SizeofNlAttr || size > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[unix.SizeofNlAttr:size]) {
				return
			}
			b = b[min(len(b), (size+3)&^3):]
		}
	}
}

// xdpReader asks drivers what XDP they can do.
type xdpReader struct{ asker }

func newXDPReader() xdpReader { return xdpReader{newAsker("netdev")} }

func (r xdpReader) read(index int) *XDPFeatures {
	for kind, value := range r.ask(netdevDevGet, nl.NewRtAttr(netdevDevIndex, nl.Uint32Attr(uint32(index)))) {
		if kind == netdevDevFeatures && len(value) == 8 {
			bits := binary.NativeEndian.Uint64(value)
			return &XDPFeatures{bits&xdpBasic != 0, bits&xdpRedirect != 0, bits&xdpZeroCopy != 0}
		}
	}
	return nil
}

// offloadReader asks which offload features are active, by the names that ethtool shows.
type offloadReader struct{ asker }

func newOffloadReader() offloadReader { return offloadReader{newAsker("ethtool")} }

func (r offloadReader) read(index int) map[string]bool {
	header := nl.NewRtAttr(unix.ETHTOOL_A_FEATURES_HEADER|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_INDEX, nl.Uint32Attr(uint32(index)))
	for kind, value := range r.ask(unix.ETHTOOL_MSG_FEATURES_GET, header) {
		if kind == unix.ETHTOOL_A_FEATURES_ACTIVE {
			return bitNames(value)
		}
	}
	return nil
}

// bitNames reads the names in a bitset that lists its set bits.
func bitNames(bitset []byte) map[string]bool {
	out := map[string]bool{}
	for kind, bits := range attributes(bitset) {
		if kind != unix.ETHTOOL_A_BITSET_BITS {
			continue
		}
		for _, bit := range attributes(bits) {
			for kind, name := range attributes(bit) {
				if kind == unix.ETHTOOL_A_BITSET_BIT_NAME {
					out[unix.ByteSliceToString(name)] = true
				}
			}
		}
	}
	return out
}
