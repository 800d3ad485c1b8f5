package netdev

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Links implements Stack.
func (k *Kernel) Links() ([]Link, error) {
	all, err := dump("links", k.routing.LinkList)
	if err != nil {
		return nil, err
	}
	links := make([]Link, 0, len(all))
	for _, l := range all {
		links = append(links, linkOf(l))
	}
	slices.SortFunc(links, func(a, b Link) int { return a.Index - b.Index })
	return links, nil
}

func linkOf(l netlink.Link) Link {
	a := l.Attrs()
	out := Link{
		Index:         a.Index,
		Name:          a.Name,
		Kind:          l.Type(),
		MAC:           macOf(a.HardwareAddr),
		MTU:           a.MTU,
		Up:            a.RawFlags&unix.IFF_UP != 0,
		Running:       a.RawFlags&unix.IFF_RUNNING != 0,
		Loopback:      a.RawFlags&unix.IFF_LOOPBACK != 0,
		Ethernet:      a.EncapType == "ether",
		Master:        a.MasterIndex,
		PeerNamespace: a.NetNsID,
		Queues:        a.NumRxQueues,
	}
	if out.Kind == "device" { // the library's word for hardware
		out.Kind = ""
	}
	if out.Kind == KindVeth {
		out.Peer = a.ParentIndex
	}
	return out
}

func macOf(h net.HardwareAddr) (m MAC) {
	if len(h) == len(m) {
		copy(m[:], h)
	}
	return m
}

// Peer implements Stack. The kernel answers for the other namespace when it is
// asked by the id that this one has for it (IFLA_TARGET_NETNSID).
func (k *Kernel) Peer(l Link) (Peer, error) {
	if !l.LeadsOut() {
		return Peer{}, fmt.Errorf("other end of %s: %w: it is not a veth into another namespace", l.Name, ErrUnsupported)
	}
	p, err := k.peerLink(l)
	if err != nil {
		return Peer{}, fmt.Errorf("other end of %s: %w", l.Name, translate(err))
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		found, err := dump("addresses behind "+l.Name, func() ([]netip.Addr, error) { return k.peerAddresses(l, family) })
		if err != nil {
			return Peer{}, translate(err)
		}
		p.Addresses = append(p.Addresses, found...)
	}
	return p, nil
}

func (k *Kernel) request(kind, flags int) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(kind, flags)
	r.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: k.strict}
	return r
}

func (k *Kernel) peerLink(l Link) (Peer, error) {
	r := k.request(unix.RTM_GETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(l.Peer)
	r.AddData(msg)
	r.AddData(nl.NewRtAttr(unix.IFLA_TARGET_NETNSID, nl.Uint32Attr(uint32(l.PeerNamespace))))
	answers, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return Peer{}, err
	}
	if len(answers) != 1 {
		return Peer{}, fmt.Errorf("%w: no device #%d in namespace %d", ErrNotFound, l.Peer, l.PeerNamespace)
	}
	other, err := netlink.LinkDeserialize(nil, answers[0])
	if err != nil {
		return Peer{}, err
	}
	found := linkOf(other)
	return Peer{MAC: found.MAC, Up: found.Up}, nil
}

func (k *Kernel) peerAddresses(l Link, family int) ([]netip.Addr, error) {
	r := k.request(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	msg := nl.NewIfAddrmsg(family)
	msg.Index = uint32(l.Peer)
	r.AddData(msg)
	r.AddData(nl.NewRtAttr(unix.IFA_TARGET_NETNSID, nl.Uint32Attr(uint32(l.PeerNamespace))))
	answers, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, m := range answers {
		if a, ok := globalAddress(m, l.Peer); ok {
			out = append(out, a)
		}
	}
	return out, nil
}

// globalAddress reads one RTM_NEWADDR of the device: its own address of global scope.
func globalAddress(m []byte, device int) (netip.Addr, bool) {
	if len(m) < unix.SizeofIfAddrmsg {
		return netip.Addr{}, false
	}
	msg := nl.DeserializeIfAddrmsg(m)
	if int(msg.Index) != device || Scope(msg.Scope) != ScopeUniverse {
		return netip.Addr{}, false
	}
	attrs, err := nl.ParseRouteAttr(m[msg.Len():])
	if err != nil {
		return netip.Addr{}, false
	}
	var out netip.Addr
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.IFA_LOCAL: // on point-to-point links IFA_ADDRESS is the other side
			out, _ = netip.AddrFromSlice(a.Value)
		case unix.IFA_ADDRESS:
			if !out.IsValid() {
				out, _ = netip.AddrFromSlice(a.Value)
			}
		}
	}
	return out, out.IsValid()
}
