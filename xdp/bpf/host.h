/* SPDX-License-Identifier: GPL-2.0-only */
/* Out of lace0: what the node itself sends to service addresses, and what was punted. */
#ifndef LACE_HOST_H
#define LACE_HOST_H

#include "hook.h"

/* Why a packet is refused that no claim covers. IPv6 sends multicast on every device; that
 * is nobody's mistake. */
INLINE u32 refusal(const struct packet *p, enum parsed parsed)
{
	if (parsed == UNREADABLE)
		return REASON_MALFORMED;
	if (parsed == NOT_IP)
		return REASON_FOREIGN_FRAME;
	if (p->v6 ? (u8)p->dst[0] == 0xff : (u8)p->dst[3] >= 224)
		return REASON_FOREIGN_FRAME;
	return REASON_UNALLOCATED_VIP;
}

/* Of an alias single ports are claimed, which only the first fragment of a datagram has. */
INLINE int is_taken(const struct settings *s, const struct packet *p, u32 network)
{
	return p->fragment ? may_be_claimed(p->dst) : is_claimed(s, p, network);
}

INLINE int from_node(struct __sk_buff *skb)
{
	const struct settings *s = settings_get();
	u8 copy[ETH_HLEN], *frame = bytes(skb, 0, ETH_HLEN, copy);
	struct packet p = {};
	struct slot *flow = 0;
	enum parsed parsed;
	enum cause cause;
	int verdict;

	if (!s || !frame)
		return drop(skb, REASON_FOREIGN_FRAME);
	if (is_trunk(frame, TRUNK_PUNT))
		return NEXT;
	parsed = skb->vlan_present ? NOT_IP : parse(skb, &p);
	if (parsed != PARSED)
		return drop(skb, refusal(&p, parsed));
	struct place at = { HOST, HOST_PORT, HOST_PORT, s->host_network, KIND_HOST };

	if (is_icmp(&p) && !p.fragment) {
		verdict = message(skb, s, &p, 0, &at);
		return verdict == UNCLAIMED ? drop(skb, refusal(&p, parsed)) : verdict;
	}
	if (p.has_ports)
		flow = flow_find(s, &p, s->host_network);
	if (flow ? READ_ONCE(flow->mode) == MODE_PASS : !is_taken(s, &p, s->host_network))
		return drop(skb, refusal(&p, parsed));
	cause = no_flow(&p);
	if (flow && !p.fragment) {
		cause = lane(skb, s, &p, flow, &at, &verdict);
		if (cause == SETTLED)
			return verdict;
	}
	count(COUNT_CLAIMED, skb->len);
	if (!may_send(&p, s->host_network, KIND_HOST, HOST_PORT))
		return drop(skb, REASON_SPOOFED_SOURCE);
	if (p.fragment)
		return punt_fragment(skb, s, &p, &at, WHY_VIP);
	if (!may_ask(skb, &p, flow, cause, &at))
		return drop(skb, REASON_POLICED);
	return punt(skb, s, HOST_PORT, flow ? WHY_FLOW : WHY_VIP, cause, client_queue(s, &p, flow), HOST);
}

#endif
