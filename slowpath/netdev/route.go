package netdev

import (
	"fmt"
	"net/netip"
)

// RouteType is the kind of a route; the numbers are the kernel's (rtnetlink.h).
type RouteType uint8

const (
	Unicast     RouteType = 1
	Blackhole   RouteType = 6
	Unreachable RouteType = 7
	Prohibit    RouteType = 8
)

// Scope of a route or address; the numbers are the kernel's (rtnetlink.h).
type Scope uint8

const (
	ScopeUniverse Scope = 0
	ScopeSite     Scope = 200
	ScopeLink     Scope = 253
	ScopeHost     Scope = 254
)

// Protocol says who made a route.
type Protocol uint8

const (
	ProtocolKernel Protocol = 2
	ProtocolBoot   Protocol = 3
	ProtocolStatic Protocol = 4
	// ProtocolLace marks the routes that Lace made, so that they can be found again
	// after the configuration that asked for them is gone. No other router in
	// iproute2's rt_protos uses the number.
	ProtocolLace Protocol = 0x4c
)

// Route is one hop of one route of the main table.
type Route struct {
	Destination netip.Prefix // masked; 0.0.0.0/0 or ::/0 for the default
	Gateway     netip.Addr   // invalid: on the link
	Source      netip.Addr   // preferred source; invalid: the kernel chooses
	Device      int          // index; 0 for blackhole and its like
	Type        RouteType    // 0 means Unicast
	Scope       Scope        // IPv4 only; the kernel gives IPv6 routes ScopeUniverse
	Protocol    Protocol
	Metric      int // 0 in an IPv6 request means the kernel's default, 1024
	MTU         int // longest packet that is sent this way; 0: what the device takes
}

// IsDefault reports whether r takes what no other route takes.
func (r *Route) IsDefault() bool { return r.Destination.Bits() == 0 }

// IsHost reports whether r leads to exactly one address.
func (r *Route) IsHost() bool { return r.Destination.IsSingleIP() }

func (r Route) String() string {
	s := r.Destination.String()
	if r.Gateway.IsValid() {
		s += " via " + r.Gateway.String()
	}
	s += fmt.Sprintf(" dev #%d", r.Device)
	if r.Source.IsValid() {
		s += " src " + r.Source.String()
	}
	if r.Metric != 0 {
		s += fmt.Sprintf(" metric %d", r.Metric)
	}
	return s
}
