/* SPDX-License-Identifier: GPL-2.0-only */
/* Fragments. Only the first one of a datagram has ports, so the others are told by their
 * addresses alone, and the first one with them, for it decides about all. What was claimed
 * in vain Go gives back as it came. */
#ifndef LACE_FRAGMENT_H
#define LACE_FRAGMENT_H

#include "claim.h"
#include "counter.h"
#include "flow.h"
#include "police.h"
#include "punt.h"
#include "source.h"

/* One bit for each address from which replies may come: those of backends, now or when some
 * flow began. No others are looked at. xdp/filter.go writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct filter);
} backend_filter SEC(".maps");

INLINE int may_be_reply(const struct packet *p) { return filter_has(&backend_filter, p->src); }

/* All fragments of a datagram to one queue, whose worker then need not wait for another. */
INLINE u32 fragment_queue(const struct settings *s, const struct packet *p)
{
	u32 ends[4] = { p->src[0] ^ p->dst[0], p->src[1] ^ p->dst[1], p->src[2] ^ p->dst[2], p->src[3] ^ p->dst[3] };

	return queue_of(s, ends, 0);
}

INLINE int punt_fragment(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
			 const struct place *at, u8 why)
{
	if (!fragment_may_ask(skb, p, at))
		return drop(skb, REASON_POLICED);
	return punt(skb, s, at->here, why, CAUSE_HEADER, fragment_queue(s, p), at->hook);
}

INLINE int has_flow(const struct settings *s, const struct packet *p, u32 network)
{
	struct slot *flow = p->has_ports ? flow_find(s, p, network) : 0;

	return flow && READ_ONCE(flow->mode) != MODE_PASS;
}

/* In from a pod or an uplink. Whose source is not its own is only dropped when it is
 * certain that the packet is Lace's. */
INLINE int ingress_fragment(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
			    const struct place *at)
{
	int to_vip = may_be_claimed(p->dst);

	if (!to_vip && !may_be_reply(p) && !has_flow(s, p, at->network))
		return pass(skb);
	if (!may_send(p, at->network, at->kind, at->from)) {
		if (!has_flow(s, p, at->network) && !is_claimed(s, p, at->network))
			return pass(skb);
		count(COUNT_CLAIMED, skb->len);
		return drop(skb, REASON_SPOOFED_SOURCE);
	}
	count(COUNT_CLAIMED, skb->len);
	return punt_fragment(skb, s, p, at, to_vip ? WHY_VIP : WHY_FLOW);
}

/* Out of a pod's or an uplink's device. */
INLINE int egress_fragment(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
			   const struct place *at)
{
	if (!may_be_reply(p) && !has_flow(s, p, at->network))
		return pass(skb);
	count(COUNT_CLAIMED, skb->len);
	return punt_fragment(skb, s, p, at, WHY_FLOW | WHY_EGRESS);
}

#endif
