// Package load makes traffic and measures what became of it: UDP frames made inside the
// kernel, UDP and TCP from real sockets, connections, and round trips.
//
// It owns generators, their counterparts and the clocks by which they are judged. It knows
// nothing of what lies between the two ends, so that every mode of the suite meets the same
// load; and it must never be slower than what it measures: Ceiling says how fast the
// generators are when nothing is in their way.
//
// # Method
//
// UDP loads run in a closed loop on one processor. Frames are made by BPF_PROG_TEST_RUN with
// live frames; the softirqs that carry them run in the generator's own thread, so that
// nothing can overflow but the queues in front of other threads, and these are pinned to the
// same processor with a higher priority. The cost of a packet is the processor time of all
// threads involved, divided by the packets that arrived. That figure stays right when other
// work shares the machine; packets per second do not.
//
// Threads of real-time priority can stop a machine, and a call that makes frames cannot be
// stopped: so it makes as many as take some milliseconds, the generator sleeps a moment after
// each, and whatever waits or repeats looks at its context.
//
// Everything else is measured by the clock on the wall.
//
// # Namespaces
//
// A Space is the network namespace of a host. What has to happen inside runs on a thread of
// its own that ends afterwards and never comes back to other work; sockets made there are
// then used from anywhere.
//
// Cost: a thread for each endpoint of a flow that streams; no allocation per packet.
package load
