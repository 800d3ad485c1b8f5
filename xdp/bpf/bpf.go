// Package bpf holds the kernel programs of Lace and their compiled object.
//
// The C sources are small headers, one matter each, joined by lace.c:
//
//	types, settings, port, counter,     the ground: kernel interface, node, ports, counts,
//	cause                               why a packet is left to Go
//	parse, tag, flow, claim, source     what a packet is, whose it is, who may send it
//	icmp, message                       about whose flow an ICMP error speaks, and what becomes of it
//	generation, decision, state         what Go decided about it, whether that holds, what was seen
//	rewrite, delivery, lane             repeating a decision
//	police                              who may ask Go how much while it is busy
//	trunk, punt, inject, socket         the hop to Go and back
//	fragment                            which fragments go there
//	hook, host                          the programs' bodies
//
// Beside them, in an object of its own that a node can do without:
//
//	alias                               the node's own sockets that call its own addresses
//
// A claim program reads, and changes nothing of a packet that it does not claim. It never
// decides: what is claimed goes to Go, with the port on which it was met, or the way that
// Go decided for its flow, when the slot says so (the lane):
//
//	parse → flow → mode → header → copy under the sequence → generations → port → fit
//	      → checksums and rewrite → note → deliver
//
// Whatever is not as it was when Go decided goes to Go again, counted by cause.
//
// Cost: an unclaimed packet costs some 10 ns (parse, two bits of filters), one from or to an
// address that shares its bit some 20 (device, one record of the flow table's
// tags, one bit of the filter), however many flows there are; one that the lane takes some
// 60 ns up to its delivery, and the flow's slot if that is not in the cache; see
// BenchmarkHook, BenchmarkFind and BenchmarkLane in package xdp. The object is little-endian,
// as is every platform of Lace, and reproducible: the same clang writes the same bytes.
package bpf

//go:generate go run ./reasons reason.h
//go:generate go tool -modfile=../../tools.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -go-package bpf -output-stem lace -no-global-types -cflags "-O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" Lace lace.c
//go:generate go tool -modfile=../../tools.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -go-package bpf -output-stem alias -no-global-types -cflags "-O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" Alias alias.c
