// Package table is the one value that crosses from the control plane down to the
// packet path: an immutable snapshot of ports, frontends, backends, addresses and
// routes under one generation number.
//
// A snapshot is a flat, pointer-free, little-endian file. The control plane writes it
// with Encode and WriteFile, the packet path maps it read-only with Open and swaps one
// pointer. Its records are the Go structs of records.go as they lie in memory; beside
// them lie ready-made indexes, so that Open builds nothing and two processes that map
// the same file share the memory.
//
//	header    magic, layout, CRC32C, size, generation, time, hash keys, sections, settings
//	records   ports, frontends, backend ids, backends, addresses, routes
//	indexes   port by id (direct); frontend by key and by id, VIP, backend by id and
//	          address (open-addressed, linear probing, at most half full); routes as
//	          disjoint spans of the address space (binary search)
//
// Flow: Contents → Encode → WriteFile → Open → lookups. Encode and Open run the same
// checks. Open trusts nothing: checksum, section bounds, every id, position and count,
// and that every index finds exactly its records. After that no lookup can leave the
// file or run for ever, whoever wrote it. What it cannot guard against is a writer that
// changes a file in place while it is mapped: writers replace files by renaming, and the
// state directory belongs to root alone.
//
// The package never touches a packet, a clock or Kubernetes. Lookups take no lock and
// allocate nothing: one keyed hash and mostly one probe, about 7 ns when the lines are in
// cache; Route is a binary search. The hash keys are drawn anew for every file, so
// that nobody who can choose addresses can choose collisions.
package table
