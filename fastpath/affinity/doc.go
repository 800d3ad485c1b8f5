// Package affinity remembers which backend a client was given: sessionAffinity ClientIP.
//
// It owns a table of fixed size in memory that outlives the process, a pinned BPF array in
// production, which no program reads. A record says that a client, at whichever address of
// a Service port it called, was given a backend, and when it last opened a flow. The table
// decides nothing: whether that backend may still be given is its caller's to know.
//
// A client's hash, keyed with a secret of the table, names two buckets of eight records; a
// new record goes into the emptier one. When both are full the record that was used least
// recently gives way: a client that is forgotten is merely given a backend anew. So the
// memory is bounded, whoever calls from however many addresses.
//
// Workers share the table: a bucket is changed under a lock of this process. A record bears
// a checksum of its own, so that one that a kill -9 left half written counts as none.
//
// It must never allocate, keep time or touch a packet. Cost: two buckets,
// ten cache lines, for each new flow of a Service that asks for it (BenchmarkRemember);
// packets of flows do not come here.
package affinity
