package nat

import (
	"math/bits"

	"lace-cni.io/lace/fastpath/checksum"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// Translation is what was decided about a new flow. Ports are in host order.
type Translation struct {
	Client      conntrack.Tuple  // as the client's packets carry it: client, VIP, ports, network
	Network     packet.NetworkID // of the backend; the reply tuple lives in it
	Backend     packet.Addr
	BackendPort uint16
	Source      packet.Addr // whom the backend sees: the client, the VIP, or an address of the node
	SourcePort  uint16      // 0: any of the range
}

// To is the translation of client's packets to a backend with the source kept; where the
// backend is the client itself (hairpin) the source is the VIP, so that the reply comes
// back to be translated instead of going the short way.
func To(client *conntrack.Tuple, network packet.NetworkID, backend packet.Addr, port uint16) Translation {
	t := Translation{
		Client: *client, Network: network,
		Backend: backend, BackendPort: port,
		Source: client.Src, SourcePort: client.SrcPort,
	}
	if t.Hairpin() {
		t.Source = client.Dst
	}
	return t
}

// Hairpin reports whether the client is its own backend.
func (t *Translation) Hairpin() bool {
	return t.Backend == t.Client.Src && t.Network == t.Client.Network
}

// Make fills tuple and rewrite of both directions, and sets or clears FlagHairpin and
// FlagSNAT. Everything else in the flows is the caller's.
func (t *Translation) Make(fwd, rev *conntrack.Flow) {
	c := &t.Client
	fwd.Tuple = *c
	fwd.Rewrite = conntrack.Rewrite{Src: t.Source, Dst: t.Backend, SrcPort: t.SourcePort, DstPort: t.BackendPort}
	rev.Tuple = conntrack.Tuple{
		Src: t.Backend, Dst: t.Source, SrcPort: t.BackendPort, DstPort: t.SourcePort,
		Network: t.Network, Protocol: c.Protocol,
	}
	rev.Rewrite = conntrack.Rewrite{Src: c.Dst, Dst: c.Src, SrcPort: c.DstPort, DstPort: c.SrcPort}
	setDifferences(fwd)
	setDifferences(rev)
	flags := t.flags()
	const own = conntrack.FlagHairpin | conntrack.FlagSNAT
	fwd.Flags = fwd.Flags&^own | flags
	rev.Flags = rev.Flags&^own | flags
}

func (t *Translation) flags() (f conntrack.Flags) {
	if t.Hairpin() {
		f |= conntrack.FlagHairpin
	}
	if t.Source != t.Client.Src || t.SourcePort != t.Client.SrcPort {
		f |= conntrack.FlagSNAT
	}
	return f
}

// setDifferences computes what the rewrite does to the sums over addresses, and over
// addresses and ports. The ffff of v4-mapped addresses cancels out.
func setDifferences(f *conntrack.Flow) {
	r := &f.Rewrite
	r.L3 = checksum.Plus(checksum.Diff(f.Src[:], r.Src[:]), checksum.Diff(f.Dst[:], r.Dst[:]))
	r.L4 = checksum.Plus(r.L3, checksum.Plus(portDiff(f.SrcPort, r.SrcPort), portDiff(f.DstPort, r.DstPort)))
}

// portDiff is checksum.Diff of the two bytes of a port in a packet.
func portDiff(old, new uint16) uint16 {
	return checksum.Plus(^bits.ReverseBytes16(old), bits.ReverseBytes16(new))
}
