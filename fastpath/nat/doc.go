// Package nat is the arithmetic of translation: which backend, which source port, what a
// flow's packets become, and the rewriting itself.
//
// It owns the unbiased choice among backends, the search for a source port whose reply
// tuple is free, the checksum differences that a flow carries, and the edits to a frame:
// addresses, ports, IPv4 header checksum, TCP and UDP checksums, SCTP's CRC32c, TTL. It
// does not decide which backends are eligible, whose source is to be rewritten or through
// which port a packet leaves, and it keeps no flows: conntrack does.
//
// # Flow
//
// For a new flow: Pick, To, perhaps another Source, Ports.Open. For every packet: Apply,
// and DecrementTTL where Lace forwards as a router. A damaged packet stays damaged: all
// checksums are carried on from what the packet holds, never made from scratch.
//
// # Cost
//
// Apply writes the addresses, the ports and at most two checksums, some nanoseconds;
// SCTP reads the whole packet twice, since its checksum cannot be adjusted in place.
// Nothing allocates. Functions without receiver are safe for concurrent use on packets
// of their own; a Ports belongs to one worker.
package nat
