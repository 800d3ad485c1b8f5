/* SPDX-License-Identifier: GPL-2.0-only */
/* How much each port may ask of Go while the trunk is congested. Go says so, and nothing
 * is held back as long as it does not. */
#ifndef LACE_POLICE_H
#define LACE_POLICE_H

#include "cause.h"
#include "flow.h"
#include "lane.h"
#include "port.h"
#include "types.h"

/* What a packet asks of Go. Each kind has an allowance of its own, so that who opens flow
 * after flow does not stand in the way of those that exist, his own among them.
 * fastpath/police.Ask holds the same numbers. */
enum ask {
	ASK_NEW,   /* to open a flow */
	ASK_FLOW,  /* to carry a packet of a flow */
	ASK_AGAIN, /* to look again at a flow whose Service, endpoint or way has changed, or that an error is about */
	ASKS,
};

/* xdp/police.go holds the same record. */
struct allowance {
	u64 cost;  /* of a packet, in nanoseconds of its port's time; 0: everything is allowed */
	u64 depth; /* how far ahead of its time a port may be, nanoseconds */
};

struct allowances {
	struct allowance of[ASKS];
	u64 any; /* 0: everything is allowed of everything, look no further */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct allowances);
} police SEC(".maps");

struct bucket {
	u64 until;   /* up to when what was asked is paid for, nanoseconds since the system started */
	u64 policed; /* packets dropped */
};

/* xdp/police.go holds the same record. */
struct buckets {
	struct bucket of[ASKS];
};

/* By port id. What the node itself sends is the host port's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, u32);
	__type(value, struct buckets);
} police_ports SEC(".maps");

/* Behind an uplink are many senders, told apart by prefix: /24 of IPv4, /48 of IPv6, which
 * is what one site gets (RFC 6177). */
struct prefix {
	u32 network;
	u32 first;
	u16 second; /* IPv6 only */
	u8 v6;
	u8 ask;
};

/* Who has not asked for longest is forgotten, and begins anew. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct prefix);
	__type(value, u64); /* as bucket.until */
} police_prefixes SEC(".maps");

/* An uplink as a whole may ask for so many times what one prefix may: a flood from
 * everywhere does not stand in the way of pods. A power of two. */
#define UPLINK_SHIFT 2
#define PAYMENTS 4 /* attempts; each is lost to another processor's packet of the same sender */

/* Whether n packets are within the allowance. What is sent as one is let through as one,
 * and paid for by waiting. */
INLINE int pays(u64 *until, u64 now, u64 cost, u64 depth, u32 n)
{
	u64 paid = READ_ONCE(*until);

	for (int i = 0; i < PAYMENTS; i++) {
		u64 from = paid > now ? paid : now, seen;

		if (from - now + cost > depth)
			return 0;
		seen = __sync_val_compare_and_swap(until, paid, from + cost * n);
		if (seen == paid)
			return 1;
		paid = seen;
	}
	return 1;
}

INLINE struct prefix prefix_of(const struct packet *p, u32 network, enum ask ask)
{
	struct prefix key = { .network = network, .v6 = p->v6, .ask = ask };

	if (p->v6) {
		key.first = p->src[0];
		key.second = p->src[1] & 0xffff; /* as it lies in the packet: the first two bytes */
	} else {
		key.first = p->src[3] & 0xffffff; /* the first three */
	}
	return key;
}

INLINE int prefix_pays(const struct packet *p, u32 network, enum ask ask, u64 now, const struct allowance *a, u32 n)
{
	struct prefix key = prefix_of(p, network, ask);
	u64 *until = bpf_map_lookup_elem(&police_prefixes, &key), begins = now + a->cost * n;

	if (until)
		return pays(until, now, a->cost, a->depth, n);
	bpf_map_update_elem(&police_prefixes, &key, &begins, BPF_ANY);
	return 1;
}

INLINE enum ask ask_of(struct __sk_buff *skb, const struct packet *p, const struct slot *flow, enum cause cause)
{
	struct transport t = {};

	if (!flow)
		return ASK_NEW;
	if (cause == CAUSE_GENERATION || cause == CAUSE_ICMP)
		return ASK_AGAIN;
	/* Whoever repeats one SYN asks for as much as who sends many. */
	if (p->plain && transport_read(skb, p, &t) && (t.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		return ASK_NEW;
	return ASK_FLOW;
}

/* What is allowed, 0: everything. */
INLINE const struct allowances *allowances_get(void)
{
	u32 zero = 0;
	const struct allowances *all = bpf_map_lookup_elem(&police, &zero);

	return all && READ_ONCE(all->any) ? all : 0;
}

INLINE int may_ask_for(struct __sk_buff *skb, const struct packet *p, enum ask ask, const struct place *at,
		       const struct allowances *all)
{
	u32 id = at->from, n = skb->gso_segs ? skb->gso_segs : 1;
	struct allowance a;
	struct buckets *b;
	u64 now;
	int ok;

	a.cost = READ_ONCE(all->of[ask].cost);
	a.depth = READ_ONCE(all->of[ask].depth);
	if (!a.cost)
		return 1;
	b = bpf_map_lookup_elem(&police_ports, &id);
	if (!b)
		return 1;
	now = bpf_ktime_get_ns();
	if (at->kind == KIND_UPLINK)
		ok = prefix_pays(p, at->network, ask, now, &a, n) &&
		     pays(&b->of[ask].until, now, a.cost >> UPLINK_SHIFT, a.depth, n);
	else
		ok = pays(&b->of[ask].until, now, a.cost, a.depth, n);
	if (!ok)
		__sync_fetch_and_add(&b->of[ask].policed, 1);
	return ok;
}

/* Whether the port from which the packet came may ask Go about it now. */
INLINE int may_ask(struct __sk_buff *skb, const struct packet *p, const struct slot *flow, enum cause cause,
		   const struct place *at)
{
	const struct allowances *all = allowances_get();

	return !all || may_ask_for(skb, p, ask_of(skb, p, flow, cause), at, all);
}

/* The same of a fragment, which mostly does not show whether its flow is a new one. */
INLINE int fragment_may_ask(struct __sk_buff *skb, const struct packet *p, const struct place *at)
{
	const struct allowances *all = allowances_get();

	return !all || may_ask_for(skb, p, ASK_FLOW, at, all);
}

#endif
