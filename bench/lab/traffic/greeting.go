package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// maxGreeting bounds the line in which a server names itself and the client.
const maxGreeting = 256

var errCorrupt = errors.New("the echo differs from what was sent")

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Greeting is the line with which a server begins: name, tab, client address as the server
// sees it, newline.
func Greeting(name string, client netip.AddrPort) []byte {
	return fmt.Appendf(nil, "%s\t%s\n", name, client)
}

// parseGreeting splits b into the server's name, the client's address as the server saw
// it, and what follows the line.
func parseGreeting(b []byte) (name string, client netip.AddrPort, rest []byte, err error) {
	line, rest, found := bytes.Cut(b, []byte{'\n'})
	if !found {
		return "", netip.AddrPort{}, nil, fmt.Errorf("%w: no greeting in %d bytes", errCorrupt, len(b))
	}
	name, addr, found := strings.Cut(string(line), "\t")
	if !found {
		return "", netip.AddrPort{}, nil, fmt.Errorf("%w: greeting %q has no address", errCorrupt, line)
	}
	client, err = netip.ParseAddrPort(addr)
	if err != nil {
		return "", netip.AddrPort{}, nil, fmt.Errorf("%w: greeting %q: %v", errCorrupt, line, err)
	}
	return name, client, rest, nil
}

// readGreeting reads one line and not a byte more.
func readGreeting(r io.Reader) (string, netip.AddrPort, error) {
	line := make([]byte, 0, 64)
	var one [1]byte
	for len(line) < maxGreeting {
		if _, err := io.ReadFull(r, one[:]); err != nil {
			return "", netip.AddrPort{}, err
		}
		line = append(line, one[0])
		if one[0] == '\n' {
			break
		}
	}
	name, client, _, err := parseGreeting(line)
	return name, client, err
}

// pattern fills b with bytes that depend on their position in the stream, so that a
// lost, doubled or moved piece is noticed.
func pattern(b []byte, offset uint64) {
	for i := range b {
		x := (offset + uint64(i)) * 0x9e3779b97f4a7c15
		b[i] = byte(x >> 56)
	}
}
