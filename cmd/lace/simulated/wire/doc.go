// Package wire plays hosts at packet level: a TCP and UDP just good enough to carry the
// demo's traffic over whatever is between them, without a kernel.
//
// It owns segments (building them, and refusing those whose checksum is wrong) and the
// two ends of a connection. It knows nothing of Services: a Host hands frames to a Carry
// function and is handed frames. It must never repair what a wrong rewrite broke: a
// segment that does not fit its connection exactly is answered with a reset or dropped, as
// a real stack would.
//
// TCP here sends one segment at a time and waits for its acknowledgement (stop and wait),
// retransmits every 50 ms, and knows no options, windows or half-closed ends.
//
// Cost: a goroutine per open connection; nothing here is on the packet path.
package wire
