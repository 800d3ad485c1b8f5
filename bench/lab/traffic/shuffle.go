package traffic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/checksum"
)

// shuffledSequence is the sequence number of datagrams that are to be answered as they came:
// in fragments, shuffled and some of them twice.
const shuffledSequence = 1 << 63

// pieceLen is the payload of a fragment: less than any MTU of the lab leaves.
const pieceLen = 1280

// shuffled is a connected socket that sends what no socket sends: each datagram in fragments
// made by hand, in random order, one in four of them twice. It receives as usual.
type shuffled struct {
	net.Conn
	from, to netip.AddrPort
}

// shuffle makes a connection send that way.
func shuffle(c net.Conn, to netip.AddrPort) net.Conn { return &shuffled{c, localAddr(c), to} }

func (c *shuffled) Write(payload []byte) (int, error) {
	if err := sendShuffled(c.from, c.to, payload); err != nil {
		return 0, err
	}
	return len(payload), nil
}

// sendShuffled sends one datagram.
func sendShuffled(from, to netip.AddrPort, payload []byte) error {
	from, to = unmap(from), unmap(to)
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("raw socket: %w", err)
	}
	defer unix.Close(fd)
	for _, p := range disorder(pieces(from, to, payload)) {
		if err := unix.Sendto(fd, p, 0, address); err != nil {
			return fmt.Errorf("send a fragment of %d bytes: %w", len(p), err)
		}
	}
	return nil
}

// disorder shuffles fragments and puts one copy of some of them among the others, but not
// behind the last: a copy that comes when its datagram is complete begins another one.
func disorder(all [][]byte) [][]byte {
	for _, i := range rand.Perm(len(all))[:(len(all)+3)/4] {
		all = append(all, all[i])
	}
	rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	last := all[len(all)-1]
	at := slices.IndexFunc(all, func(p []byte) bool { return &p[0] == &last[0] })
	if at < len(all)-1 {
		all = slices.Delete(all, at, at+1)
	}
	return all
}

// pieces cuts a datagram into IP packets, in order.
func pieces(from, to netip.AddrPort, payload []byte) (all [][]byte) {
	udp := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(udp, from.Port())
	binary.BigEndian.PutUint16(udp[2:], to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(8+len(payload)))
	udp = append(udp, payload...)
	src, dst := from.Addr().As16(), to.Addr().As16()
	sum := checksum.Of(checksum.Pseudo(&src, &dst, unix.IPPROTO_UDP, len(udp)), udp)
	checksum.Put(udp[6:], checksum.NonZero(sum))
	id := rand.Uint32() | 1 // the kernel replaces an IPv4 identification of 0
	for at := 0; at < len(udp); at += pieceLen {
		end := min(at+pieceLen, len(udp))
		header := pieceIPv6(from, to, id, at, end, end < len(udp))
		if to.Addr().Is4() {
			header = pieceIPv4(from, to, id, at, end, end < len(udp))
		}
		all = append(all, append(header, udp[at:end]...))
	}
	return all
}

// pieceIPv4 is the header of bytes from at to end (RFC 791); the kernel fills the checksum in.
func pieceIPv4(from, to netip.AddrPort, id uint32, at, end int, more bool) []byte {
	h := make([]byte, 20)
	h[0], h[8], h[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(h[2:], uint16(20+end-at))
	binary.BigEndian.PutUint16(h[4:], uint16(id))
	binary.BigEndian.PutUint16(h[6:], uint16(at/8))
	if more {
		h[6] |= 0x20
	}
	copy(h[12:], from.Addr().AsSlice())
	copy(h[16:], to.Addr().AsSlice())
	return h
}

// pieceIPv6 is the header and fragment header of bytes from at to end (RFC 8200).
func pieceIPv6(from, to netip.AddrPort, id uint32, at, end int, more bool) []byte {
	h := make([]byte, 48)
	h[0], h[6], h[7], h[40] = 0x60, unix.IPPROTO_FRAGMENT, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(h[4:], uint16(8+end-at))
	copy(h[8:], from.Addr().AsSlice())
	copy(h[24:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(h[42:], uint16(at))
	if more {
		h[43] |= 1
	}
	binary.BigEndian.PutUint32(h[44:], id)
	return h
}
