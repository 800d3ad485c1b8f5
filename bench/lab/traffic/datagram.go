package traffic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// datagram builds a payload: its sequence number, then bytes that depend on it.
func datagram(size int, sequence uint64) []byte {
	b := make([]byte, max(size, 8))
	binary.BigEndian.PutUint64(b, sequence)
	pattern(b[8:], sequence)
	return b
}

// askUDP sends one datagram and waits, until the deadline of c, for its answer. Answers
// to datagrams with another sequence number are late ones, and skipped.
func askUDP(c net.Conn, size int, sequence uint64) (name string, client netip.AddrPort, err error) {
	want := datagram(size, sequence)
	if _, err := c.Write(want); err != nil {
		return "", netip.AddrPort{}, err
	}
	got := make([]byte, 64<<10)
	for {
		n, err := c.Read(got)
		if err != nil {
			return "", netip.AddrPort{}, err
		}
		name, client, rest, err := parseGreeting(got[:n])
		if err != nil {
			return name, client, err
		}
		if len(rest) < 8 || binary.BigEndian.Uint64(rest) != sequence {
			continue
		}
		if !bytes.Equal(rest, want) {
			return name, client, fmt.Errorf("%w: datagram %d of %d bytes", errCorrupt, sequence, len(rest))
		}
		return name, client, nil
	}
}
