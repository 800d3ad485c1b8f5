/* SPDX-License-Identifier: GPL-2.0-only */
/* The claim: which packets of a port are Lace's. The rest passes untouched. */
#ifndef LACE_HOOK_H
#define LACE_HOOK_H

#include "claim.h"
#include "counter.h"
#include "flow.h"
#include "lane.h"
#include "port.h"
#include "punt.h"
#include "source.h"

/* Tagged packets are not: the VLAN's own device, which may be a port too, meets them again
 * without the tag. */
INLINE int is_readable(struct __sk_buff *skb, struct packet *p)
{
	return !skb->vlan_present && parse(skb, p) == PARSED;
}

/* A packet that no flow has: to a claimed address. */
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
	if (!is_readable(skb, &p))
		return pass(skb);
	s = settings_get();
	d = device_of(skb);
	if (!s || !d)
		return pass(skb);
	if (p.has_ports)
		flow = flow_find(s, &p, d->network);
	if (flow ? READ_ONCE(flow->mode) == MODE_PASS : !is_claimed(s, &p, d->network))
		return pass(skb);
	cause = no_flow(&p);
	if (flow) {
		struct place at = { INGRESS, d->port, d->port, d->network, kind };

		cause = lane(skb, s, &p, flow, &at, &verdict);
		if (cause == SETTLED)
			return verdict;
	}
	count(COUNT_CLAIMED, skb->len);
	if (!may_send(&p, d->network, kind, d->port))
		return drop(skb, REASON_SPOOFED_SOURCE);
	return punt(skb, s, d->port, flow ? WHY_FLOW : WHY_VIP, cause, client_queue(s, &p, flow), INGRESS);
}

/* Out of a pod's or an uplink's device, from the node's own stack: replies of backends
 * that run on the node itself. */
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
	if (!is_readable(skb, &p) || !p.has_ports)
		return pass(skb);
	s = settings_get();
	d = device_of(skb);
	if (!s || !d)
		return pass(skb);
	flow = flow_find(s, &p, d->network);
	if (!flow || READ_ONCE(flow->mode) == MODE_PASS)
		return pass(skb);
	struct place at = { EGRESS, d->port, HOST_PORT, d->network, KIND_HOST };

	cause = lane(skb, s, &p, flow, &at, &verdict);
	if (cause == SETTLED)
		return verdict;
	count(COUNT_CLAIMED, skb->len);
	return punt(skb, s, d->port, WHY_FLOW | WHY_EGRESS, cause, client_queue(s, &p, flow), EGRESS);
}

#endif
