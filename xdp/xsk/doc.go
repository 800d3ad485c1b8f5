// Package xsk holds Lace's own AF_XDP sockets: frame memory (UMEM) that user space and
// kernel share, and the four rings of each socket through which frames change hands.
//
// It owns the memory mappings, the sockets, and the record of who holds each frame. It
// must never look into a packet, load a BPF program, know of Kubernetes, log, or allocate
// between Open and Close.
//
// Concurrency: a Umem and all its Sockets and Pollers belong to one goroutine at a time;
// nothing here locks, so two workers use two Umems.
//
// Flow of a frame, none of its bytes copied by us:
//
//	free ──Refill──▶ fill ──kernel──▶ rx ring ──Receive──▶ held ──Transmit──▶ tx ──kernel──▶ completion ──Complete──▶ free
//
// A worker owns one socket per queue on a Umem of its own and turns the same loop for ever:
// Poller.Wait, then for each socket Receive a batch, rewrite the frames in place
// (Umem.Bytes), Transmit the same frames on this or on any other socket of the Umem, Release
// those it drops, Kick, Complete, Refill. Umem.Conserved proves at any time that no frame
// was lost or counted twice.
//
// Cost: our side of a frame's whole round is about 15 ns (one atomic load and one atomic
// store per ring and batch, the rest is the record of who holds the frame; see
// BenchmarkRoundOfFrame). A system call is made only where the kernel asks for one
// (need-wakeup). In copy mode the kernel takes 32 frames per call, and Kick calls until it
// took all; there the kernel's part, some 450 ns a frame on a veth, is what counts.
//
// Source: linux/if_xdp.h, Documentation/networking/af_xdp.rst and net/xdp/xsk.c of Linux
// 6.6 and later.
package xsk
