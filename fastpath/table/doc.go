// Package table is the one value that crosses from the control plane down to the
// packet path: an immutable snapshot of ports, frontends, backends, addresses and
// routes under one generation number.
//
// A snapshot is a flat, pointer-free, little-endian file. The control plane writes it
// with Encode and WriteFile, the packet path copies it into its own memory with Open and
// swaps one pointer. Its records are the Go structs of records.go as they lie in memory;
// beside them lie ready-made indexes, so that Open builds nothing.
//
//	header    magic, layout, CRC32C, size, generation, time, hash keys, sections, settings
//	records   ports, frontends, backend ids, ranges, backends, addresses, routes
//	indexes   port by id (direct); frontend by key and by id, VIP, backend by id and
//	          address (open-addressed, linear probing, at most half full); routes as
//	          disjoint spans of the address space (binary search)
//
// Flow: Contents → Encode → WriteFile → Open → lookups. Encode and Open run the same
// checks. Open trusts nothing: checksum, section bounds, every id, position and count,
// and that every index finds exactly its records. After that no lookup can leave the
// memory or run for ever, whoever wrote the file, and whatever becomes of the file later:
// what was checked is a copy that nobody else can reach. Writers replace files by renaming
// all the same, so that a reader finds one or the other whole.
//
// The package never touches a packet, a clock or Kubernetes. Lookups take no lock and
// allocate nothing: one keyed hash and mostly one probe, about 7 ns when the lines are in
// cache; Route is a binary search. The hash keys are drawn anew for every file, so
// that nobody who can choose addresses can choose collisions.
package table
