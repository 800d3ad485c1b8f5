// Package blackhole names those whose packets vanish because they are too long for a way.
//
// It owns the rule that tells a black hole from path MTU discovery at work: a packet that
// is too long vanishes unless its sender learns it and sends shorter ones. A flow is in a
// black hole when its sender could not be told, or has been told Patience times, over more
// than Grace, and goes on.
//
// It must never allocate, decide about a packet, or remember more than Holes flows and 64
// that have been told. Whoever floods it with flows pushes others out, which costs a name and
// no packet.
//
// Cost: a comparison with each of eight holes for a packet that is lost, one hash for one
// that is answered; none for any other packet.
//
// Flow: pipeline → Watch.Untold, Watch.Told → Watch.Holes → the counter file → `lace get
// drops`, a metric, a Problem.
//
// A Watch belongs to one worker.
package blackhole
