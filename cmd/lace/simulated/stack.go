package simulated

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/netdev"
)

type problem = model.Problem

// mtu of every device, as Ethernet has it.
const mtu = 1500

// playedStack is the network stack of n1: what a routed pod network would look like, with
// the devices behind which the network's members are.
func playedStack(n *network) (netdev.Stack, error) {
	f := netdev.NewFake()
	p := player{fake: f}
	p.device(netdev.Link{Name: uplink})
	p.address(uplink, "172.30.0.11/24", "fd30::11/64")
	p.device(netdev.Link{Name: trunk, Kind: netdev.KindVeth})
	for i, m := range n.members {
		if m.device == uplink || m.device == trunk {
			continue
		}
		mac := netdev.MAC{0x02, 0x1a, 0xce, 0x0c, 1, byte(i)}
		p.device(netdev.Link{Name: m.device, Kind: netdev.KindVeth, Peer: 2, PeerNamespace: i + 1})
		p.pod(m, mac)
	}
	p.route("10.244.2.0/24", "172.30.0.12", uplink)
	p.route("fd00:10:244:2::/64", "fd30::12", uplink)
	p.route("0.0.0.0/0", "172.30.0.100", uplink)
	p.route("::/0", "fd30::100", uplink)
	return f, p.err
}

// player fills a fake stack and remembers the first thing that it refused.
type player struct {
	fake *netdev.Fake
	err  error
	all  map[string]int
}

func (p *player) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *player) device(l netdev.Link) {
	l.MTU, l.Up, l.Running, l.Ethernet = mtu, true, true, true
	l.MAC = netdev.MAC{0x02, 0x1a, 0xce, 0x0a, 1, byte(len(p.all))}
	added, err := p.fake.AddLink(l)
	p.note(err)
	if p.all == nil {
		p.all = map[string]int{}
	}
	p.all[l.Name] = added.Index
}

func (p *player) address(device string, prefixes ...string) {
	for _, a := range prefixes {
		p.note(p.fake.AddAddress(device, a))
	}
}

// pod puts a pod's addresses behind a device, by host routes.
func (p *player) pod(m *member, mac netdev.MAC) {
	addresses := []netip.Addr{m.Addr4, m.Addr6}
	p.note(p.fake.SetPeer(m.device, netdev.Peer{MAC: mac, Up: true, Addresses: addresses}))
	for _, a := range addresses {
		p.note(p.fake.ReplaceRoute(netdev.Route{
			Destination: netip.PrefixFrom(a, a.BitLen()), Device: p.all[m.device],
			Type: netdev.Unicast, Protocol: netdev.ProtocolBoot,
		}))
		p.note(p.fake.SetNeighbour(m.device, a.String(), mac))
	}
}

func (p *player) route(to, via, device string) {
	p.note(p.fake.ReplaceRoute(netdev.Route{
		Destination: netip.MustParsePrefix(to), Gateway: netip.MustParseAddr(via),
		Device: p.all[device], Type: netdev.Unicast, Protocol: netdev.ProtocolStatic,
	}))
}
