package api

import "time"

// Flow is one registered connection, seen from its client.
type Flow struct {
	Protocol string  `json:"protocol"`
	Network  uint32  `json:"network"`
	Client   string  `json:"client"`            // address:port
	Frontend string  `json:"frontend"`          // address:port that the client dialled
	Backend  string  `json:"backend"`           // address:port where it went
	Source   string  `json:"source,omitempty"`  // address:port the backend sees, where it is not the client's own
	Service  string  `json:"service,omitempty"` // namespace/name, where still known
	Pod      string  `json:"pod,omitempty"`     // of the backend, where still known
	State    string  `json:"state"`             // half-open, established, closing, closed; new or assured for UDP
	Mode     string  `json:"mode"`              // go, lane or pass: who moves its packets
	Delivery string  `json:"delivery"`          // stack or direct: how its packets go on
	Hairpin  bool    `json:"hairpin,omitempty"`
	Outside  bool    `json:"outside,omitempty"`
	Idle     float64 `json:"idleSeconds"` // since the last packet, either way; steps of 67 ms
}

// Drop is one reason for which packets were dropped, with its counts.
type Drop struct {
	Reason  string `json:"reason"`
	Help    string `json:"help"`
	Where   string `json:"where"` // "go" or "kernel"
	Class   string `json:"class"` // "drop" or "answer": refused with an answer
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// BlackHoles are the last few flows whose packets vanish for this reason, the last seen
	// first: those of too-big could not be told, those of packet-too-big do not listen.
	BlackHoles []BlackHole `json:"blackHoles,omitempty"`
}

// BlackHole is a flow whose packets are too long for a way, again and again.
type BlackHole struct {
	Protocol    string    `json:"protocol"`
	Network     uint32    `json:"network"`
	Source      string    `json:"source"`      // address:port as the packets came; port 0: they have none
	Destination string    `json:"destination"` // the same
	In          string    `json:"in"`          // device where they come in
	Device      string    `json:"device"`      // that they do not fit
	MTU         uint32    `json:"mtu"`         // of Device
	Longest     uint32    `json:"longest"`     // packet, in bytes
	Packets     uint64    `json:"packets"`     // lost
	Seen        time.Time `json:"seen"`        // the last one
}

// Port is a device through which packets of Services come and go.
type Port struct {
	ID        uint16   `json:"id"`
	Kind      string   `json:"kind"` // host, pod, uplink
	Device    string   `json:"device"`
	Index     int      `json:"index"`
	MTU       int      `json:"mtu"`
	Network   uint32   `json:"network"`
	Delivery  string   `json:"delivery,omitempty"` // stack or direct, of new flows; none: the host's
	HostMAC   string   `json:"hostMAC,omitempty"`
	PeerMAC   string   `json:"peerMAC,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Routes    []string `json:"routes,omitempty"` // prefixes that leave through it
	Flows     uint64   `json:"flows"`            // registered flows that clients behind it opened, closed ones among them
	Policed   uint64   `json:"policed"`          // packets dropped because it asked for more than its share
}

// Explanation is what the production pipeline would do with a packet, step by step.
// Nothing is sent and no flow is registered.
type Explanation struct {
	From       string `json:"from"`       // as asked
	To         string `json:"to"`         // as asked
	Source     string `json:"source"`     // address:port of the packet tried
	Port       string `json:"port"`       // device on which it would come in
	Generation uint64 `json:"generation"` // of the tables used
	Steps      []Step `json:"steps"`
	Verdict    string `json:"verdict"` // forward, answer, pass, drop
	Reason     string `json:"reason"`
	Help       string `json:"help"` // the reason in a sentence
	// FastpathDown says why no process decides about packets; Verdict and Reason are then
	// what becomes of a new connection without it. Empty: there is one.
	FastpathDown string   `json:"fastpathDown,omitempty"`
	Notes        []string `json:"notes,omitempty"`   // what else to know, a sentence each
	Backend      string   `json:"backend,omitempty"` // address:port chosen this time
	Pod          string   `json:"pod,omitempty"`     // of that backend
	Service      string   `json:"service,omitempty"` // namespace/name behind To
	// Eligible are the endpoints among which the choice is, with the rule that chose them and
	// why the others are none of them; Whose says in a sentence for which clients and addresses
	// that holds. nil: the destination is no port of a Service, or its Service has changed.
	Eligible *Choice `json:"eligible,omitempty"`
	Whose    string  `json:"whose,omitempty"`
	// Live lists registered flows from this client address to this frontend that are not
	// closed, at most ten.
	Live []Flow `json:"live,omitempty"`
}

// Step is one stage of the pipeline.
type Step struct {
	Stage string `json:"stage"` // parse, source, flow, frontend, choose, translate, deliver, …
	Text  string `json:"text"`
}
