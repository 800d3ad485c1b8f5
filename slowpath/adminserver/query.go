package adminserver

import (
	"net/netip"
	"strconv"
	"strings"

	"lace-cni.io/lace/control/model"
)

// maxQuestion bounds each part of an explain question: a namespace and a name of 63 and
// 253 bytes fit.
const maxQuestion = 320

// origins says what may be named as origin.
const origins = "the pod of an endpoint (name or namespace/name), a pod's device, an address, or host"

// origin says who sends the packet that is to be explained; exactly one field is set.
type origin struct {
	host bool
	addr netip.Addr
	name string // of a pod: name or namespace/name; or of a device
}

// destination is where the packet goes.
type destination struct {
	addr     netip.AddrPort
	protocol model.Protocol
	own      netip.Addr // that was said, where addr is its alias
}

// parseOrigin reads "host", an address, or a name.
func parseOrigin(s string) (origin, error) {
	switch {
	case s == "":
		return origin{}, badQuestion("from is empty: say %s", origins)
	case len(s) > maxQuestion:
		return origin{}, badQuestion("from has %d bytes, at most %d make sense", len(s), maxQuestion)
	case s == "host":
		return origin{host: true}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return origin{}, badQuestion("from %q: an address with a zone is no client of Services", s)
		}
		return addressOrigin(s, a.Unmap())
	}
	if !isName(s) {
		return origin{}, badQuestion("from %q: say %s", s, origins)
	}
	return origin{name: s}, nil
}

// addressOrigin refuses addresses that no packet of a client on a network can carry.
func addressOrigin(s string, a netip.Addr) (origin, error) {
	switch {
	case a.IsLoopback():
		return origin{}, badQuestion("from %q: a loopback address stays on its own machine; for the node itself say host", s)
	case a.IsMulticast(), a.IsUnspecified(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return origin{}, badQuestion("from %q: no packet comes from a multicast, broadcast or unspecified address; say %s", s, origins)
	}
	return origin{addr: a}, nil
}

// isName admits what Kubernetes and the kernel admit in names, and one slash.
func isName(s string) bool {
	slashes := 0
	for _, c := range []byte(s) {
		switch {
		case c == '/':
			slashes++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._@", c) >= 0:
		default:
			return false
		}
	}
	return slashes <= 1 && !strings.HasPrefix(s, "/") && !strings.HasSuffix(s, "/")
}

// parseDestination reads ADDRESS:PORT/PROTOCOL, an IPv6 address in brackets.
func parseDestination(s string) (destination, error) {
	if len(s) > maxQuestion {
		return destination{}, badQuestion("to has %d bytes, at most %d make sense", len(s), maxQuestion)
	}
	addr, protocol, found := strings.Cut(s, "/")
	if !found {
		return destination{}, badQuestion("to %q: say address:port/protocol, such as 10.96.0.10:80/tcp or [fd00::10]:53/udp", s)
	}
	d := destination{protocol: protocolOf(protocol)}
	if d.protocol == 0 {
		return destination{}, badQuestion("to %q: protocol %q is none of tcp, udp, sctp", s, protocol)
	}
	ap, err := netip.ParseAddrPort(addr)
	switch {
	case err != nil && portTooLarge(addr):
		return destination{}, badQuestion("to %q: the port is too large: 65535 is the last one", s)
	case err != nil:
		return destination{}, badQuestion("to %q: %q is no address and port (names are not looked up); say address:port/protocol, an IPv6 address in brackets", s, addr)
	case ap.Addr().Zone() != "":
		return destination{}, badQuestion("to %q: an address with a zone is no address of a Service", s)
	case ap.Port() == 0:
		return destination{}, badQuestion("to %q: port 0 is no port", s)
	}
	d.addr = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	return d, nil
}

// portTooLarge reports whether what follows the last colon is a number that no port has.
func portTooLarge(addr string) bool {
	n, _ := strconv.ParseUint(addr[strings.LastIndexByte(addr, ':')+1:], 10, 64) // the largest, when out of range
	return n > 1<<16-1
}

func protocolOf(s string) model.Protocol {
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		if strings.EqualFold(s, p.String()) {
			return p
		}
	}
	return 0
}
