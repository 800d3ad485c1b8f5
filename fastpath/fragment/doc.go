// Package fragment remembers datagrams that come in pieces.
//
// Only the first fragment of a datagram has ports, so only it can be decided about; the
// others follow it. The Table keeps, for each unfinished datagram, what became of its
// first fragment, which byte ranges have come, and copies of the fragments that came
// before the first.
//
// It must never reassemble, look behind the IP headers, hold a fragment whose first one
// is known, or let one port's datagrams push out those of a port that has fewer. It does
// not decide: the pipeline does.
//
// # Flow
//
//	Meet ──▶ Decides: the caller decides about the first fragment, then Decide ──▶ Next, Next, ...
//	     ──▶ Follows: the fate of the first one
//	     ──▶ Held:    copied; comes back from Next when the first one is there
//	     ──▶ Refused: with a reason
//
// # Bounds
//
// Datagrams and held bytes are bounded in all and for each port (Bounds). A port that
// needs more loses its own oldest datagram; when the table itself is full, the port that
// has most of it does. A datagram is forgotten when its last byte has been met, or
// Lifetime after its first one came, whatever came since.
//
// # Cost
//
// One lock of a shard, one hash, one look along a short chain and an insertion into a
// sorted array, at whose end fragments that come in order belong; BenchmarkMeet is the
// figure. A held fragment is copied twice. Nothing allocates. Memory that was never used
// is never touched.
//
// A Table may be shared by any number of workers.
package fragment
