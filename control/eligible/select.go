package eligible

import (
	"slices"

	"lace-cni.io/lace/control/model"
)

// Query is what the answer depends on besides the endpoints.
type Query struct {
	Policy       model.Policy       // internal or external traffic policy, whichever governs the frontend
	Distribution model.Distribution // how near endpoints are found; used by policy Cluster only
	Node         model.Node         // this node: Name and Zone are used
}

// Select returns the endpoints that a new connection may go to, out of all endpoints of
// one Service port in one address family, merged from all its EndpointSlices.
//
// The contract:
//
//   - Ready is taken at its word: an endpoint may be ready while it terminates or is not
//     serving (publishNotReadyAddresses). An endpoint is draining when it is not ready,
//     but serving and terminating. All others are never chosen.
//   - Policy Cluster chooses among all ready endpoints, narrowed by topology. If no
//     endpoint is ready anywhere, it chooses all draining ones, whatever their topology.
//   - Policy Local chooses all ready endpoints of this node; if there is none, all
//     draining ones of this node; if there is none either, nothing. Topology does not
//     matter. The two policies fall back independently of one another. An endpoint whose
//     node is not known is never local.
//   - Topology by hints looks at ready endpoints only. If each has a node hint and at
//     least one names this node, those that do are chosen. Otherwise, if each has a zone
//     hint and at least one names the zone of this node, those that do are chosen.
//     Otherwise all are. One ready endpoint without a hint therefore disables that kind
//     of hint, and a node without a zone never uses zone hints.
//   - PreferClosest replaces hints: ready endpoints on this node, if there is none those
//     in the zone of this node, if there is none all.
//   - Any is true when some endpoint is ready or draining, wherever it is. With an empty
//     choice it tells "drop: endpoints elsewhere" from "refuse: no endpoint at all".
//   - Of several copies of one address and port one counts: not terminating before
//     terminating, then ready before not ready, then serving before not serving, then
//     by their remaining fields.
//   - The answer is a function of the set of endpoints. Endpoints and Excluded are sorted
//     by address and port, and together they hold each given endpoint once; of identical
//     copies all but one are excluded as duplicates.
//
// The answer may share memory with endpoints, which must not be changed afterwards.
// Select is safe for concurrent use and does not change its arguments.
func Select(endpoints []model.Endpoint, q Query) model.Choice {
	s := selection{query: q, sorted: Sort(endpoints)}
	s.count()
	if q.Policy == model.PolicyLocal {
		s.chooseLocal()
	} else {
		s.chooseCluster()
	}
	return s.choice()
}

// selection is one call of Select on its way.
type selection struct {
	query  Query
	sorted []model.Endpoint

	ready, draining           int // of all endpoints that count
	localReady, localDraining int
	tally                     tally

	tier  string
	notes []string
}

func (s *selection) count() {
	for i := range s.sorted {
		e := &s.sorted[i]
		if s.duplicate(i) {
			continue
		}
		switch {
		case e.Ready:
			s.ready++
			s.tally.add(e, &s.query.Node)
			if s.local(e) {
				s.localReady++
			}
		case draining(e):
			s.draining++
			if s.local(e) {
				s.localDraining++
			}
		}
	}
}

func (s *selection) duplicate(i int) bool { return i > 0 && same(&s.sorted[i-1], &s.sorted[i]) }

func (s *selection) local(e *model.Endpoint) bool { return onNode(e, &s.query.Node) }

func (s *selection) chooseLocal() {
	switch {
	case s.localReady > 0:
		s.tier = Local
	case s.localDraining > 0:
		s.tier = LocalTerminating
	default:
		s.tier = Nothing
	}
	if s.tally.nodeHints+s.tally.zoneHints > 0 {
		s.notes = []string{LocalIgnoresHints}
	}
}

func (s *selection) chooseCluster() {
	switch {
	case s.ready > 0:
		s.tier, s.notes = s.topology()
	case s.draining > 0:
		s.tier = AllTerminating
	default:
		s.tier = Nothing
	}
}

func (s *selection) choice() model.Choice {
	c := model.Choice{Tier: s.tier, Notes: s.notes, Any: s.ready+s.draining > 0}
	out := 0
	for i := range s.sorted {
		if s.reason(i) != "" {
			out++
		}
	}
	if out == 0 {
		c.Endpoints = slices.Clip(s.sorted)
		return c
	}
	c.Excluded = make([]model.Exclusion, 0, out)
	if n := len(s.sorted) - out; n > 0 {
		c.Endpoints = make([]model.Endpoint, 0, n)
	}
	for i := range s.sorted {
		if r := s.reason(i); r != "" {
			c.Excluded = append(c.Excluded, model.Exclusion{Endpoint: s.sorted[i], Reason: r})
		} else {
			c.Endpoints = append(c.Endpoints, s.sorted[i])
		}
	}
	return c
}

// reason says why endpoint i is not chosen; empty: it is. What is wrong with the
// endpoint itself comes before where it is.
func (s *selection) reason(i int) string {
	e := &s.sorted[i]
	switch {
	case s.duplicate(i):
		return Duplicate
	case !e.Ready && !draining(e):
		return unusable(e)
	case s.query.Policy == model.PolicyLocal && !s.local(e):
		return elsewhere(e)
	case !e.Ready && s.tier != AllTerminating && s.tier != LocalTerminating:
		return Terminating
	}
	return s.tooFar(e)
}

func draining(e *model.Endpoint) bool { return !e.Ready && e.Serving && e.Terminating }

func unusable(e *model.Endpoint) string {
	if e.Terminating {
		return NotServing
	}
	return NotReady
}

func elsewhere(e *model.Endpoint) string {
	if e.Node == "" {
		return NodeUnknown
	}
	return NotLocal
}
