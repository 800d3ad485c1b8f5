// Package conntrack is the flow table: an array of 128-byte slots, and one of 16-byte
// records of what the buckets hold, that Go and the BPF programs share. Go decides about
// flows and writes them; the kernel looks them up, and both note what they saw.
//
// It owns the layout of slot and record (layout.go, tag.go; the C side is xdp/bpf/flow.h
// and tag.h), the hash, the placement of flows, the rules for writing so that a reader or
// a kill -9 never leaves a half decision behind, the TCP states that follow from what both
// directions saw, and expiry. It does not choose backends or ports, parse packets, read a
// clock or know where the memory comes from: pinned BPF arrays in production, plain memory
// in tests.
//
// # Flow
//
// A connection is a pair of slots, one for each direction, and both are in the table
// before its first packet is forwarded. Insert makes the pair, Lookup copies one
// direction out, Touch notes a packet, Replace gives a flow another backend, Delete and
// Sweep take pairs out. A closed connection stays until its timeout, as a tombstone: a
// late packet of it meets the old decision and is not taken for a new flow.
//
// A tuple's hash names three buckets of eight slots and a tag. The near bucket is one of
// 4,096 that lie together; the flow lives there, or, when that is crowded, in the first, or
// in the second if it has more room; it never moves. So some ten thousand flows touch 4 MiB
// of memory and not a page each of the whole table: half of what a packet cost was to find
// the page. The record of a bucket holds the tags of its eight slots and the numbers of its
// flows that live elsewhere. A reader looks at slots with the right tag only, and at the
// next bucket's record only when such a number is not zero. Three full buckets refuse the
// new flow; no live flow is ever evicted, except the oldest half-open TCP connection, or the
// oldest datagram flow that nobody has answered, when their number reaches its bound.
//
// Ports share all of that once SharePorts was called: each may have twice what is free of
// the room (three quarters of the table) and of either bound. A port that has its share evicts its own unconfirmed flows
// and is refused others; what other ports have, and may still have, does not depend on it.
//
// # Concurrency
//
// Every slot carries a sequence number, odd while it is written. A slot is written before
// its tag and cleared after it; a tag that a reader has seen promises nothing. A reader
// compares the tuple, copies, and compares the sequence again; it takes no lock. Writers
// hold the locks of all buckets that a flow's tuples may live in, taken in ascending order, so
// any number of workers may use one Table. The state word (last seen, bits, incarnation)
// is changed by compare-and-swap outside the sequence, by Go and by BPF; the incarnation
// in it is the half of the sequence, so that a note for a flow that is gone never reaches
// the flow that took its slot. Every shared word is accessed through sync/atomic, whose
// operations are sequentially consistent: correct on amd64 and arm64 alike, and clean
// under the race detector. The words of a slot between the two changes of its sequence
// are an exception on amd64, see store_amd64.go. Hosts are little-endian.
//
// One process writes at a time; the caller sees to that with a lock file. Readers of
// other processes use View.
//
// # Cost
//
// Lookup touches the record and one cache line for most IPv4 flows, two for IPv6; when
// there is no flow mostly the record alone. It allocates nothing and makes no call into
// the runtime. Insert takes up to six uncontended locks. A flow costs 256 bytes of slots
// and 4 bytes of records, 520 bytes at the load of one half that is recommended, plus 20
// bytes for each permitted half-open connection and unanswered flow. Benchmarks in this package give the
// times.
package conntrack
