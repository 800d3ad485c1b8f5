/* SPDX-License-Identifier: GPL-2.0-only */
/* Types and constants of the kernel interface that every part needs. */
#ifndef LACE_TYPES_H
#define LACE_TYPES_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define INLINE static __always_inline

/* Verdicts of a tcx program (enum tcx_action_base in linux/bpf.h from 6.6 on). */
enum {
	NEXT = -1, /* let the next program, then the kernel, have the packet */
	DROP = 2,
};

/* One load from memory that another party writes, at this place and only here. */
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))

/* Keeps the compiler from moving memory accesses across. */
#define barrier() asm volatile("" ::: "memory")

#endif
