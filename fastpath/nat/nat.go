// Package nat chooses backends and source ports and rewrites packets.
package nat

import (
	"math/rand/v2"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
)

// Pick chooses one id, each with the same probability; 0 from an empty list.
func Pick(r *rand.Rand, ids []uint32) uint32 { return 0 }

// Translation is what Go decided about a new flow.
type Translation struct {
	Client      conntrack.Tuple  // as the client's packet carries it: source, VIP, ports, network
	Network     packet.NetworkID // of the backend: the reply tuple lives there
	Backend     packet.Addr
	BackendPort uint16
	Source      packet.Addr // what the backend sees as client: the client itself, the VIP, or an address of the node
	SourcePort  uint16
}

// Make fills tuple, rewrite and address flags of both directions. Ids, stamps, targets and state are the caller's.
func (t *Translation) Make(fwd, rev *conntrack.Flow) {}

// Ports is a range of source ports for rewritten sources. One per worker.
type Ports struct{ First, Last uint16 }

// Open registers the pair that t describes; when the reply tuple is taken, with another source port of the range.
// Clash means that every port of the range is in use towards that backend.
func (p *Ports) Open(flows *conntrack.Table, r *rand.Rand, t *Translation, fwd, rev *conntrack.Flow, now uint32) conntrack.Result {
	return conntrack.Full
}

// Apply rewrites the packet in its frame. False: the packet cannot carry this rewrite, and is untouched.
func Apply(p *packet.Packet, r *conntrack.Rewrite) bool { return false }

// DecrementTTL takes one from TTL or hop limit. False: it is used up, and the packet untouched.
func DecrementTTL(p *packet.Packet) bool { return false }
