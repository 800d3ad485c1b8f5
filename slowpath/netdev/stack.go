package netdev

import (
	"context"
	"errors"
	"net/netip"
)

// Errors that an operation on a Stack wraps; test them with errors.Is.
var (
	// ErrNotFound says that the named device or route does not exist.
	ErrNotFound = errors.New("not found")
	// ErrDown says that the device exists but is not up.
	ErrDown = errors.New("device is down")
	// ErrInvalid says that the request contradicts itself: a source address that the
	// node does not have, a destination with host bits, a gateway of the other family.
	ErrInvalid = errors.New("invalid")
	// ErrUnsupported says that the device or the kernel cannot answer the question.
	ErrUnsupported = errors.New("not supported")
)

// Stack is the network stack of one network namespace. All methods are safe for
// concurrent use. Lists are copies in a stable order.
type Stack interface {
	// Links lists the devices by index.
	Links() ([]Link, error)
	// Addresses lists the node's own addresses by device index.
	Addresses() ([]Address, error)
	// Routes lists the unicast, blackhole, unreachable and prohibit routes of the main
	// table of both families, sorted by destination and the kernel's preference. A
	// multipath route appears once per hop.
	Routes() ([]Route, error)
	// RouteTo asks by which route the node's own packets to an address leave, after all rules
	// and tables; ErrNotFound when there is none. Of the answer, Device and Gateway count.
	RouteTo(to netip.Addr) (Route, error)
	// Neighbours lists what ARP and NDP know, without failed entries.
	Neighbours() ([]Neighbour, error)
	// Stations lists which MAC address is behind which port of a bridge.
	Stations() ([]Station, error)
	// Peer looks at the other end of a veth whose peer is in another network
	// namespace: its MAC address and its addresses. ErrUnsupported when the kernel or
	// the process's rights do not allow it.
	Peer(l Link) (Peer, error)
	// ReplaceRoute adds the route, or puts it in the place of the one with the same
	// destination and metric.
	ReplaceRoute(r Route) error
	// DeleteRoute removes the route with this destination, device and metric;
	// ErrNotFound when there is none.
	DeleteRoute(r Route) error
	// Watch delivers one notice after one or several changes to anything that the
	// lists contain, until ctx ends; then the channel is closed. The channel holds at
	// most one notice: a slow reader loses none that matters. A notice may also come
	// without a change. A failure of the subscription closes the channel early.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Offloads reads the offload features of a device.
	Offloads(device string) (Offloads, error)
}

// View is everything attach derives from, read at nearly one moment.
type View struct {
	Links      []Link
	Addresses  []Address
	Routes     []Route
	Neighbours []Neighbour
	Stations   []Station
	Peers      map[int]Peer // by index of the veth on the node's side
}

// Read takes a View. Devices that vanish while it reads are simply not in it; the
// notice of their going follows.
func Read(s Stack) (View, error) {
	var v View
	var err error
	if v.Links, err = s.Links(); err != nil {
		return v, err
	}
	if v.Addresses, err = s.Addresses(); err != nil {
		return v, err
	}
	if v.Routes, err = s.Routes(); err != nil {
		return v, err
	}
	if v.Neighbours, err = s.Neighbours(); err != nil {
		return v, err
	}
	if v.Stations, err = s.Stations(); err != nil {
		return v, err
	}
	v.Peers, err = readPeers(s, v.Links)
	return v, err
}

// readPeers looks behind every veth that leads out of the namespace. What cannot be
// looked at, or is gone, is left out: neighbours and stations then have to say it. Any other
// failure is one of the reading: what is there must not look as if it had gone.
func readPeers(s Stack, links []Link) (map[int]Peer, error) {
	peers := make(map[int]Peer)
	for _, l := range links {
		if !l.LeadsOut() {
			continue
		}
		p, err := s.Peer(l)
		switch {
		case err == nil:
			peers[l.Index] = p
		case !hidden(err):
			return peers, err
		}
	}
	return peers, nil
}

// hidden reports an error that says nothing of the reading itself. A namespace that is gone
// is an invalid one.
func hidden(err error) bool {
	return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrDown)
}
