/* SPDX-License-Identifier: GPL-2.0-only */
/* ICMP at a hook: what is about a flow, addressed to a claimed address, or forged as if it
 * were about a packet to one is Lace's. It never takes the lane, and is told apart early, so
 * that the rest of the hooks need not know. */
#ifndef LACE_MESSAGE_H
#define LACE_MESSAGE_H

#include "claim.h"
#include "icmp.h"
#include "lane.h"
#include "police.h"
#include "punt.h"
#include "source.h"
#include "stack.h"

#define UNCLAIMED 0x100 /* no verdict: the message is not Lace's */

/* Packets to claimed addresses are translated before they leave their sender's node: an error
 * that comes in for somebody who lives here and quotes one has been made up. From an uplink
 * only what goes to a pod is: the node may lack a route to us and send them by another way. */
INLINE int is_forged(const struct settings *s, const struct packet *p, const struct packet *q,
		     const struct place *at)
{
	struct packet sent = { .ports = q->ports << 16, .protocol = q->protocol, .has_ports = 1 };
	u32 home;

	if (!q->has_ports || at->hook != INGRESS)
		return 0;
	__builtin_memcpy(sent.dst, q->src, sizeof(sent.dst));
	if (!is_claimed(s, &sent, at->network))
		return 0;
	home = port_of(p->dst, at->network);
	return home && !(at->kind == KIND_UPLINK && home == HOST_PORT);
}

/* Errors go to the worker to which their flow goes. Those about flows that the stack routes
 * go the way of their replies. d is the device's record; the node itself has none. */
INLINE int message(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
		   const struct device *d, struct place *at)
{
	struct packet q = {};
	struct slot *flow = flow_quoted(skb, s, p, &q, at->network);
	u8 why = flow ? WHY_FLOW : WHY_VIP;

	if (flow && READ_ONCE(flow->mode) == MODE_PASS)
		return UNCLAIMED;
	if (flow && d && is_stack_reply(flow)) {
		if (at->hook == INGRESS)
			return reply_in(skb, p, flow, d);
		if (!leaves_here(flow, d))
			return UNCLAIMED;
		at->from = d->port;
		at->kind = d->kind;
	}
	if (!flow && (at->hook == EGRESS || !(is_claimed(s, p, at->network) || is_forged(s, p, &q, at))))
		return UNCLAIMED;
	count(COUNT_CLAIMED, skb->len);
	if (at->hook != EGRESS && !may_send(p, at->network, at->kind, at->from))
		return drop(skb, REASON_SPOOFED_SOURCE);
	if (!may_ask(skb, p, flow, CAUSE_ICMP, at))
		return drop(skb, REASON_POLICED);
	if (at->hook == EGRESS)
		why |= WHY_EGRESS;
	return punt(skb, s, at->here, why, CAUSE_ICMP, client_queue(s, flow ? &q : p, flow), at->hook);
}

INLINE int message_or_pass(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
			   const struct device *d, struct place *at)
{
	int verdict = message(skb, s, p, d, at);

	return verdict == UNCLAIMED ? pass(skb) : verdict;
}

#endif
