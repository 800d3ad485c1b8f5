package compile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// offer is what one Service port gives, in one family, to those who call its frontends of
// one kind.
type offer struct {
	inside, outside set        // for clients inside the cluster, and for others
	keep            []*backend // may keep flows, by address and port
	sources         sources
	session         uint64
	affinity        uint32
}

// set is the backends that new flows get, by address and port.
type set struct {
	members []*backend
	empty   table.Empty
}

// sources are the clients that may call, as sorted ranges.
type sources struct {
	restricted bool
	ranges     []table.Range
}

func (s sources) equal(o sources) bool {
	return s.restricted == o.restricted && slices.Equal(s.ranges, o.ranges)
}

func (s *set) equal(o *set) bool { return s.empty == o.empty && slices.Equal(s.members, o.members) }

func (o *offer) equal(p *offer) bool {
	return o == p || o.inside.equal(&p.inside) && o.outside.equal(&p.outside) && slices.Equal(o.keep, p.keep) &&
		o.sources.equal(p.sources) && o.session == p.session && o.affinity == p.affinity
}

// offerOf picks what a frontend of that kind gives. A ClusterIP gives the same to everybody:
// where the client is changes nothing for it. Of all other frontends clients inside the
// cluster get what policy Cluster gives, whatever the external policy is.
func offerOf(kind model.FrontendKind, choice *model.FamilyChoice, of *endpointBackends) *offer {
	if kind == model.ClusterIP {
		one := of.set(choice.Internal)
		return &offer{inside: one, outside: one, keep: of.keep}
	}
	return &offer{inside: of.set(choice.Cluster), outside: of.set(choice.External), keep: of.keep}
}

// endpointBackends are the backends of all endpoints of one family, in the same order.
type endpointBackends struct {
	endpoints []model.Endpoint
	backends  []*backend
	keep      []*backend // those that may keep flows
}

// set translates a choice, whose endpoints are in the order of all.
func (e *endpointBackends) set(c model.Choice) set {
	out := set{empty: emptyMeans(c)}
	chosen := c.Endpoints
	for i := range e.endpoints {
		if len(chosen) == 0 {
			break
		}
		if at := &e.endpoints[i]; chosen[0].Addr == at.Addr && chosen[0].Port == at.Port {
			out.members = append(out.members, e.backends[i])
			chosen = chosen[1:]
		}
	}
	return out
}

// emptyMeans says what becomes of a packet when nothing is chosen: endpoints elsewhere
// make policy Local drop, no endpoint at all refuses.
func emptyMeans(c model.Choice) table.Empty {
	if c.Any && len(c.Endpoints) == 0 {
		return table.Drop
	}
	return table.Refuse
}

// sessionOf names what a client is remembered for: this port of this Service, in this
// family, at whichever of its addresses it calls. It is the same after a restart, and
// another one when the Service was made anew.
func sessionOf(s *model.Service, p *model.ServicePort, family int) uint64 {
	text := fmt.Sprintf("%s\x00%s\x00%s\x00%d\x00%d", s.Name, s.UID, p.Name, p.Protocol, family)
	sum := sha256.Sum256([]byte(text))
	return binary.LittleEndian.Uint64(sum[:]) | 1
}
