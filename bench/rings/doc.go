// Package rings measures Lace's AF_XDP sockets (xdp/xsk) beside those of
// github.com/asavie/xdp: the same frames, ring sizes and device kind, on one processor, in
// the same run and in turn, so that what the machine does to one it does to the other.
//
// It owns the benchmark and nothing else; the product imports nothing of it. All of it is
// in test files. It needs the privileges of AF_XDP. Run it with
//
//	go test -run '^$' -bench . -benchtime 60x ./bench/rings
//
// Absolute times drift with the load of the machine; the ratio is what it is for.
package rings
