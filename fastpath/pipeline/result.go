package pipeline

import (
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
)

// Verdict is what the caller has to do with the frame.
type Verdict uint8

const (
	Drop    Verdict = iota // give the frame back unsent
	Forward                // rewritten: send it
	Answer                 // now holds an answer to its sender: send it
	Pass                   // not Lace's: send it, so that the kernel gets it back
	Hold                   // a copy waits for another fragment: give the frame back unsent, it is not decided yet
)

func (v Verdict) String() string {
	if v > Hold {
		return "unknown"
	}
	return [...]string{"drop", "forward", "answer", "pass", "hold"}[v]
}

// Result is the decision about one packet.
type Result struct {
	Verdict Verdict
	Reason  reason.Reason
	Inject  packet.Inject // how the kernel is to deliver the frame; written into it already
	Port    uint16        // id of the port that Inject speaks of; 0 when dropped
	Len     int           // length of the frame to send, in bytes; 0 when dropped
	More    bool          // fragments are to be sent behind this one: call Next
}

// verdictOf follows from the reason's class, so that the two cannot disagree.
func verdictOf(r reason.Reason) Verdict {
	switch r.Class() {
	case reason.ClassForward:
		return Forward
	case reason.ClassAnswer:
		return Answer
	case reason.ClassPass:
		return Pass
	}
	return Drop
}
