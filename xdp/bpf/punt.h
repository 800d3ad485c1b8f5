/* SPDX-License-Identifier: GPL-2.0-only */
/* Handing a packet to Go over the trunk. */
#ifndef LACE_PUNT_H
#define LACE_PUNT_H

#include "counter.h"
#include "flow.h"
#include "trunk.h"

/* One queue for both directions of a flow: chosen by the client's address and port. Keyed,
 * so that a client cannot aim at one worker. Only an optimisation: any worker may meet any
 * packet, and the kernel prefers the queue that a sending socket remembers. */
INLINE u32 queue_of(const struct settings *s, const u32 *addr, u16 port)
{
	u32 h = mix(nh(s->flow_keys, addr[0] ^ addr[1] ^ addr[2] ^ addr[3], port));

	return (u64)h * s->queues >> 32;
}

INLINE u32 client_queue(const struct settings *s, const struct packet *p, const struct slot *flow)
{
	u32 client[4] = { p->dst[0], p->dst[1], p->dst[2] };

	if (!flow || !(READ_ONCE(flow->flags) & FLAG_REPLY))
		return queue_of(s, p->src, p->ports);
	/* A reply goes to where Go will send it, which may not be where it is going now. */
	client[3] = READ_ONCE(flow->new_dst);
	if (p->v6)
		__builtin_memcpy(client, flow->high_new_dst, 12);
	return queue_of(s, client, READ_ONCE(flow->new_ports) >> 16);
}

/* Of what does not fit Go gets the beginning: enough to tell its sender. */
INLINE int cut(struct __sk_buff *skb, const struct settings *s)
{
	return bpf_skb_change_tail(skb, ETH_HLEN + s->mtu, 0);
}

/* What was met on its way out keeps the next hop that the stack has found for it. */
INLINE int punt(struct __sk_buff *skb, const struct settings *s, u32 port, u8 why, enum cause cause, u32 queue,
		enum hook hook)
{
	u32 len = skb->len;
	u8 mac[12] = { s->mac[0], s->mac[1], s->mac[2], s->mac[3], s->mac[4], s->mac[5],
		       TRUNK_0, TRUNK_1, TRUNK_PUNT, why, port >> 8, port };

	if (!s->trunk)
		return drop(skb, REASON_NO_WORKER);
	if (!fits_trunk(skb, s)) {
		if (cut(skb, s))
			return drop(skb, REASON_TOO_BIG);
		mac[9] |= WHY_CUT;
		cause = CAUSE_MTU;
	}
	if (hook == EGRESS ? bpf_skb_store_bytes(skb, 6, mac + 6, 6, 0) : bpf_skb_store_bytes(skb, 0, mac, 12, 0))
		return drop(skb, REASON_NO_MEMORY);
	count(COUNT_PUNTED, len);
	count(COUNT_CAUSE + cause, len);
	skb->queue_mapping = 1 + queue;
	if (hook == HOST)
		return NEXT;
	return bpf_redirect(s->trunk, 0);
}

#endif
