package eligible

import (
	"slices"

	"lace-cni.io/lace/control/model"
)

// tally counts, over ready endpoints, what topology asks for.
type tally struct {
	ready              int
	onNode, inZone     int // where endpoints are
	nodeHints, forNode int // hints of any node, and of this one
	zoneHints, forZone int
}

func (t *tally) add(e *model.Endpoint, n *model.Node) {
	t.ready++
	t.onNode += one(onNode(e, n))
	t.inZone += one(inZone(e, n))
	t.nodeHints += one(len(e.NodeHints) > 0)
	t.forNode += one(hinted(e.NodeHints, n.Name))
	t.zoneHints += one(len(e.ZoneHints) > 0)
	t.forZone += one(hinted(e.ZoneHints, n.Zone))
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func onNode(e *model.Endpoint, n *model.Node) bool { return e.Node != "" && e.Node == n.Name }

func inZone(e *model.Endpoint, n *model.Node) bool { return e.Zone != "" && e.Zone == n.Zone }

func hinted(hints []string, name string) bool { return name != "" && slices.Contains(hints, name) }

// topology picks the tier for ready endpoints, at least one of which exists, and says
// why hints that are there do not decide.
func (s *selection) topology() (tier string, notes []string) {
	t := &s.tally
	if s.query.Distribution == model.PreferClosest {
		return s.closest()
	}
	if t.nodeHints == t.ready && t.forNode > 0 {
		return HintedNode, nil
	}
	if t.nodeHints > 0 {
		notes = append(notes, nodeNote(t))
	}
	if t.zoneHints == t.ready && t.forZone > 0 {
		return HintedZone, notes
	}
	if t.zoneHints > 0 {
		notes = append(notes, zoneNote(t, &s.query.Node))
	}
	return All, notes
}

func nodeNote(t *tally) string {
	if t.nodeHints < t.ready {
		return NodeHintsIncomplete
	}
	return NodeHintsElsewhere
}

func zoneNote(t *tally, n *model.Node) string {
	switch {
	case t.zoneHints < t.ready:
		return ZoneHintsIncomplete
	case n.Zone == "":
		return NodeWithoutZone
	}
	return ZoneHintsElsewhere
}

func (s *selection) closest() (tier string, notes []string) {
	t := &s.tally
	if t.nodeHints+t.zoneHints > 0 {
		notes = []string{HintsOverridden}
	}
	switch {
	case t.onNode > 0:
		return SameNode, notes
	case t.inZone > 0:
		return SameZone, notes
	}
	return All, notes
}

// tooFar says why a usable endpoint is outside the tier; empty: it is inside.
func (s *selection) tooFar(e *model.Endpoint) string {
	n := &s.query.Node
	switch s.tier {
	case HintedNode:
		if !hinted(e.NodeHints, n.Name) {
			return HintedToOtherNodes
		}
	case HintedZone:
		if !hinted(e.ZoneHints, n.Zone) {
			return HintedToOtherZones
		}
	case SameNode:
		if !onNode(e, n) {
			return OtherNode
		}
	case SameZone:
		if !inZone(e, n) {
			return OtherZone
		}
	}
	return ""
}
