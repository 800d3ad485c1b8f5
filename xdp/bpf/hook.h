/* SPDX-License-Identifier: GPL-2.0-only */
/* The claim: which packets of a port are Lace's. The rest passes untouched. */
#ifndef LACE_HOOK_H
#define LACE_HOOK_H

#include "claim.h"
#include "counter.h"
#include "flow.h"
#include "fragment.h"
#include "lane.h"
#include "message.h"
#include "police.h"
#include "port.h"
#include "punt.h"
#include "source.h"
#include "stack.h"

/* Tagged packets are not: the VLAN's own device, which may be a port too, meets them again
 * without the tag. */
INLINE int is_readable(struct __sk_buff *skb, struct packet *p)
{
	return !skb->vlan_present && parse(skb, p) == PARSED;
}

/* Whether a packet can be anybody's of Lace: to an address that is claimed, or from one of a
 * backend. Two bits tell most of the others without their flow, port and claim looked up. */
INLINE int may_be_ours(const struct packet *p)
{
	return p->fragment || is_icmp(p) || may_be_claimed(p->dst) || may_be_reply(p);
}

/* Of a packet that no flow has. */
INLINE enum cause no_flow(const struct packet *p) { return p->plain ? CAUSE_MISS : CAUSE_HEADER; }

/* In from a pod or an uplink. */
INLINE int ingress(struct __sk_buff *skb, u8 kind)
{
	const struct settings *s;
	const struct device *d;
	struct packet p = {};
	struct slot *flow = 0;
	enum cause cause;
	int verdict;

	if (was_here(skb))
		return NEXT;
	if (!is_readable(skb, &p) || !may_be_ours(&p))
		return pass(skb);
	s = settings_get();
	d = device_of(skb);
	if (!s || !d)
		return pass(skb);
	struct place at = { INGRESS, d->port, d->port, d->network, kind };

	if (p.fragment)
		return ingress_fragment(skb, s, &p, &at);
	if (is_icmp(&p))
		return message_or_pass(skb, s, &p, d, &at);
	if (p.has_ports)
		flow = flow_find(s, &p, d->network);
	if (flow && is_stack_reply(flow))
		return reply_in(skb, &p, flow, d);
	if (flow ? READ_ONCE(flow->mode) == MODE_PASS : !is_claimed(s, &p, d->network))
		return pass(skb);
	cause = no_flow(&p);
	if (flow) {
		cause = lane(skb, s, &p, flow, &at, &verdict);
		if (cause == SETTLED)
			return verdict;
	}
	count(COUNT_CLAIMED, skb->len);
	if (!may_send(&p, d->network, kind, d->port))
		return drop(skb, REASON_SPOOFED_SOURCE);
	if (!may_ask(skb, &p, flow, cause, &at))
		return drop(skb, REASON_POLICED);
	return punt(skb, s, d->port, flow ? WHY_FLOW : WHY_VIP, cause, client_queue(s, &p, flow), INGRESS);
}

/* Out of a pod's or an uplink's device, from the node's own stack: replies of backends that
 * run on the node itself, of all that the stack has routed, and what it has to say of
 * packets that it forwarded. */
INLINE int egress(struct __sk_buff *skb)
{
	const struct settings *s;
	const struct device *d;
	struct packet p = {};
	struct slot *flow;
	enum cause cause;
	int verdict;

	if (was_here(skb))
		return NEXT;
	if (!is_readable(skb, &p) || !(p.fragment || is_icmp(&p) || (p.has_ports && may_be_reply(&p))))
		return pass(skb);
	s = settings_get();
	d = device_of(skb);
	if (!s || !d)
		return pass(skb);
	struct place at = { EGRESS, d->port, HOST_PORT, d->network, KIND_HOST };

	if (p.fragment)
		return egress_fragment(skb, s, &p, &at);
	if (is_icmp(&p))
		return message_or_pass(skb, s, &p, d, &at);
	flow = flow_find(s, &p, d->network);
	if (!flow || READ_ONCE(flow->mode) == MODE_PASS)
		return pass(skb);
	if (is_stack_reply(flow)) {
		if (!leaves_here(flow, d))
			return pass(skb);
		at.from = d->port;
		at.kind = d->kind;
	}
	cause = lane(skb, s, &p, flow, &at, &verdict);
	if (cause == SETTLED)
		return verdict;
	count(COUNT_CLAIMED, skb->len);
	if (!may_ask(skb, &p, flow, cause, &at))
		return drop(skb, REASON_POLICED);
	return punt(skb, s, d->port, WHY_FLOW | WHY_EGRESS, cause, client_queue(s, &p, flow), EGRESS);
}

#endif
