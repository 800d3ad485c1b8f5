// Package pipeline decides about one packet: Verdict and Reason.
//
// It owns the order of the steps, which is the whole of Lace's behaviour towards a
// packet and reads as such in Process:
//
//	parse → classify → track → source check → choose → rewrite → forward
//
// Given the tables and the flow table it is a function of the packet: no clock of its
// own, no system call, no log. Its random numbers come from the generator it was made
// with. Only the flow table remembers anything, and it may be shared: any worker may
// meet any packet of a flow.
//
// It must never allocate, block, read past the frame, or let a packet of a service flow
// go untranslated to somebody who would answer it. Whatever it drops has a reason.
//
// Cost: an established packet is one parse, one look-up in the flow table, three by
// index in the tables, and the rewrite; a new flow adds two look-ups by hash, a random
// number and the insertion of both directions. The benchmarks of this package are the
// figures.
//
// One worker owns a Pipeline. Snapshot and Table may be shared.
package pipeline
