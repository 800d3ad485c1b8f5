package api

// Lane is what the kernel does with registered flows without asking Go.
type Lane struct {
	On        bool   `json:"on"`                // as published
	Flows     int    `json:"flows"`             // registered flows, both directions as one
	Installed int    `json:"installed"`         // of them, those that the kernel carries while the lane is on
	Open      int    `json:"open"`              // registered flows that are not closed: closed ones stay registered for a while
	OpenLane  int    `json:"openLane"`          // of them, those that the kernel carries while the lane is on
	Hits      Amount `json:"hits"`              // packets that the kernel settled
	Punts     []Punt `json:"punts"`             // claimed packets that it left to Go, by cause
	Drops     []Drop `json:"drops"`             // packets that it dropped, by reason; those that have counted something
	Message   string `json:"message,omitempty"` // what could not be read
}

// Amount is a number of packets and their bytes, Ethernet headers included. A packet of
// several segments counts once.
type Amount struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Punt is one cause for which the kernel leaves packets to Go.
type Punt struct {
	Cause string `json:"cause"`
	Help  string `json:"help"`
	Amount
}
