package fragment

import (
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/reason"
)

// Fate is what became of a first fragment and becomes of all that follow it.
type Fate struct {
	// Reason that the others are counted by. Its class says what becomes of them.
	Reason reason.Reason
	// ID is the identification of the datagram behind the rewrite; see Idents.
	ID uint32
	// Flow is the direction that the first fragment was taken along, if it was.
	Flow conntrack.Flow
}

// state of an unfinished datagram.
type state uint8

const (
	waiting state = iota // for its first fragment, or for what is decided about it
	decided
	bad // remembered, so that what is still to come is dropped
)

// datagram is one that is not finished. Links are indices, 0 is none.
type datagram struct {
	key   Key
	owner uint16 // the port to whose account it goes
	state state
	why   reason.Reason // of a bad one
	born  int64

	chain        uint32 // next of the same bucket
	older, newer uint32 // by birth, among all
	prev, next   uint32 // by birth, among those of the owner with the same waiting

	first, last uint32 // fragments held, in the order in which they came
	frames      uint32 // held
	bytes       uint32 // held
	chunks      uint32 // held

	fate Fate
	got  pieces
}

// account is what one port uses.
type account struct {
	lists     [2]list // see line
	datagrams uint32
	chunks    uint32 // held, also by those who are about to send them
}

// list of datagrams, the oldest first.
type list struct{ head, tail uint32 }

// Lines of an account: those that hold something or are about to can be told to give it up.
const (
	lineWaiting = 0
	lineSettled = 1
)

func (d *datagram) line() int {
	if d.state == waiting {
		return lineWaiting
	}
	return lineSettled
}
