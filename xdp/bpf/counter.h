/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets and bytes by reason, for each CPU; never reset. */
#ifndef LACE_COUNTER_H
#define LACE_COUNTER_H

#include "cause.h"
#include "types.h"
#include "reason.h"

/* A packet that the kernel had no memory to change is one more sign of overload. */
#define REASON_NO_MEMORY REASON_RING_FULL

/* Indexes below 64 are reasons; xdp/counter.go holds the same numbers. */
enum {
	COUNT_CLAIMED = 64, /* for Go; what is not punted of these is dropped with a reason */
	COUNT_PUNTED = 65,
	COUNT_INJECTED = 66,
	COUNT_CAUSE = 67, /* and the cause: why Go was asked; SETTLED has none */
	COUNTERS = 80,
};

struct count {
	u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, u32);
	__type(value, struct count);
} counters SEC(".maps");

INLINE void count(u32 what, u64 bytes)
{
	struct count *c = bpf_map_lookup_elem(&counters, &what);

	if (!c)
		return;
	c->packets++;
	c->bytes += bytes;
}

INLINE int drop(struct __sk_buff *skb, u32 reason)
{
	count(reason, skb->len);
	return DROP;
}

/* Not Lace's: untouched, as if no program were here. */
INLINE int pass(struct __sk_buff *skb)
{
	count(REASON_NOT_CLAIMED, skb->len);
	return NEXT;
}

#endif
