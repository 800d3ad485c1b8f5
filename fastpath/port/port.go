// Package port is the door through which a worker gets frames and gives them back.
//
// It owns the contract between a worker and whatever carries frames, and the carriers:
// XSK, an AF_XDP socket on the trunk, and Memory, two bounded rings in ordinary memory
// that tests and the simulated demo use in its place.
//
// It must never look into a frame, drop one silently, or copy more than it has to.
//
// Ownership: a frame that Receive or Take returned belongs to the caller until it is given to
// Transmit (those that were taken) or to Recycle. Every frame is somewhere at any time;
// Conserved says where one was lost.
//
// Cost: Receive, Take, Transmit and Recycle make no system call and allocate nothing; Flush
// and Wait are one system call each, Flush only when something was transmitted.
//
// A Port belongs to one goroutine, the worker's. Close may be called from another one
// only when the worker has returned.
package port

import "time"

// Frame is one Ethernet frame in the port's memory.
type Frame struct {
	// Bytes is the frame; its capacity is the room that the frame may grow into in place.
	// Transmit sends Bytes as it then is, which must still begin where Receive had it.
	Bytes []byte
	// Handle names the frame to the port that owns its memory and means nothing else.
	Handle uint64
}

// Port moves frames in batches.
type Port interface {
	// Receive fills batch from the front with frames that have arrived and returns how
	// many. It does not wait.
	Receive(batch []Frame) int

	// Take fills batch from the front with frames that hold nothing yet, as many as are
	// free, and returns how many: for packets that did not just come in. Their capacity is
	// their room.
	Take(batch []Frame) int

	// Transmit queues frames for sending and returns how many it took, from the front;
	// the rest stays with the caller. They leave at the next Flush at the latest.
	Transmit(batch []Frame) int

	// Recycle takes back frames that are not to be sent.
	Recycle(batch []Frame)

	// Flush makes the frames queued so far leave and collects those that have left.
	Flush() error

	// Wait blocks until a frame has arrived or the time is over; both are nil. An error
	// means that the port no longer works.
	Wait(timeout time.Duration) error

	// Backlog is how many frames have arrived and wait to be received, and how many can.
	// It makes no system call.
	Backlog() (waiting, room int)

	// Stats is what the port has counted since it was opened.
	Stats() Stats

	// Conserved reports the frames that are missing or twice there, nil when every frame
	// is accounted for. held is the number of frames now with the worker.
	Conserved(held int) error

	// Close gives the port's resources back. Nothing else may be called afterwards.
	Close() error
}

// Stats counts since the port was opened.
type Stats struct {
	Received    uint64 // frames handed out by Receive
	Transmitted uint64 // frames taken by Transmit
	Kicks       uint64 // system calls made by Flush
	RingFull    uint64 // frames that Transmit did not take
	Dropped     uint64 // frames lost before Receive for want of room, by the carrier's own count
}
