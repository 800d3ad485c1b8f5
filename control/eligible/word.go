package eligible

// Reasons why an endpoint is not chosen.
const (
	Duplicate          = "duplicate"
	NotReady           = "not-ready"
	NotServing         = "not-serving"
	Terminating        = "terminating-others-ready"
	NotLocal           = "not-local"
	NodeUnknown        = "node-unknown"
	HintedToOtherNodes = "hinted-to-other-nodes"
	HintedToOtherZones = "hinted-to-other-zones"
	OtherNode          = "other-node"
	OtherZone          = "other-zone"
)

// Tiers: the rule that chose.
const (
	Nothing          = "nothing"
	All              = "all"
	HintedNode       = "hinted-node"
	HintedZone       = "hinted-zone"
	SameNode         = "same-node"
	SameZone         = "same-zone"
	AllTerminating   = "terminating"
	Local            = "local"
	LocalTerminating = "local-terminating"
)

// Notes: why hints that ready endpoints carry did not decide.
const (
	NodeHintsIncomplete = "node-hints-incomplete"
	NodeHintsElsewhere  = "node-hints-elsewhere"
	ZoneHintsIncomplete = "zone-hints-incomplete"
	ZoneHintsElsewhere  = "zone-hints-elsewhere"
	NodeWithoutZone     = "node-without-zone"
	HintsOverridden     = "hints-overridden"
	LocalIgnoresHints   = "local-ignores-hints"
)

// Word is one word of a closed list, with its meaning in one sentence.
type Word struct{ Name, Help string }

// Reasons is the closed list of reasons.
func Reasons() []Word {
	return []Word{
		{Duplicate, "Another copy of the same address and port counts instead"},
		{NotReady, "The endpoint is not ready"},
		{NotServing, "The endpoint is terminating and no longer serving"},
		{Terminating, "The endpoint is terminating, and ready endpoints are there to be used"},
		{NotLocal, "The traffic policy is Local and the endpoint is on another node"},
		{NodeUnknown, "The traffic policy is Local and the endpoint does not say on which node it is"},
		{HintedToOtherNodes, "Every ready endpoint has a node hint, and this one's names other nodes"},
		{HintedToOtherZones, "Every ready endpoint has a zone hint, and this one's names other zones"},
		{OtherNode, "PreferClosest, and there are endpoints on this node"},
		{OtherZone, "PreferClosest, and there are endpoints in this zone"},
	}
}

// Tiers is the closed list of tiers.
func Tiers() []Word {
	return []Word{
		{Nothing, "No endpoint may be used"},
		{All, "Every ready endpoint of the cluster"},
		{HintedNode, "Ready endpoints whose node hint names this node"},
		{HintedZone, "Ready endpoints whose zone hint names the zone of this node"},
		{SameNode, "PreferClosest: ready endpoints on this node"},
		{SameZone, "PreferClosest: ready endpoints in the zone of this node"},
		{AllTerminating, "No endpoint is ready: those that still serve while they terminate"},
		{Local, "Policy Local: ready endpoints on this node"},
		{LocalTerminating, "Policy Local, none ready on this node: those on it that still serve while they terminate"},
	}
}

// Notes is the closed list of notes.
func Notes() []Word {
	return []Word{
		{NodeHintsIncomplete, "Node hints are ignored: not every ready endpoint has one"},
		{NodeHintsElsewhere, "Node hints are ignored: none names this node"},
		{ZoneHintsIncomplete, "Zone hints are ignored: not every ready endpoint has one"},
		{ZoneHintsElsewhere, "Zone hints are ignored: none names the zone of this node"},
		{NodeWithoutZone, "Zone hints are ignored: this node has no label topology.kubernetes.io/zone"},
		{HintsOverridden, "Hints are ignored: the annotation lace-cni.io/traffic-distribution decides"},
		{LocalIgnoresHints, "Hints are ignored: policy Local uses every endpoint of this node"},
	}
}
