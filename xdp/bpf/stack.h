/* SPDX-License-Identifier: GPL-2.0-only */
/* Flows that the node's own stack routes. The client's packets are translated where they come
 * in and go on up from there. Replies come in as they are, so that everything that looks at
 * packets on their way through the node sees one connection, from the client to the backend;
 * they are translated back where they leave for the client. */
#ifndef LACE_STACK_H
#define LACE_STACK_H

#include "counter.h"
#include "flow.h"
#include "port.h"
#include "source.h"

#define STACK_REPLY (FLAG_STACK | FLAG_REPLY)

INLINE int is_stack_reply(const struct slot *flow)
{
	return (READ_ONCE(flow->flags) & STACK_REPLY) == STACK_REPLY;
}

INLINE u32 slot_target(const struct slot *flow) { return (u16)READ_ONCE(flow->stamp); }

INLINE int same_mac(const u8 *a, const u8 *b)
{
	u8 differ = 0;

	for (int i = 0; i < ETH_ALEN; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* A backend behind the client's own bridge answers straight to the client's station, past
 * the stack that has routed what it answers. Addressed to the bridge itself it takes the
 * same way back, and connection tracking sees both directions. Not 0: no memory. */
INLINE int route_back(struct __sk_buff *skb, const struct slot *flow, const struct device *d)
{
	u32 here = d->port, target = slot_target(flow);
	const struct port *in, *out = bpf_map_lookup_elem(&ports, &target);
	u8 copy[ETH_ALEN], *dst = bytes(skb, 0, ETH_ALEN, copy);

	if (d->kind != KIND_POD || !dst || !out || out->kind != KIND_POD || !same_mac(dst, out->peer_mac))
		return 0;
	in = bpf_map_lookup_elem(&ports, &here);
	return in ? bpf_skb_store_bytes(skb, 0, in->host_mac, ETH_ALEN, 0) : 0;
}

/* Whether a reply, or an error about what it would answer, may come in here. Pods are no
 * routers: of such errors they send only those about their own packets. */
INLINE int may_reply(const struct packet *p, const struct slot *flow, const struct device *d)
{
	if (READ_ONCE(flow->in) == d->port)
		return 1;
	if (d->kind == KIND_POD && !p->has_ports)
		return 0;
	return may_send(p, d->network, d->kind, d->port);
}

/* A reply, or an error about what it would answer, where it comes in: on to the stack as it
 * is, if its source may be here. */
INLINE int reply_in(struct __sk_buff *skb, const struct packet *p, const struct slot *flow, const struct device *d)
{
	if (!may_reply(p, flow, d)) {
		count(COUNT_CLAIMED, skb->len);
		return drop(skb, REASON_SPOOFED_SOURCE);
	}
	if (route_back(skb, flow, d))
		return drop(skb, REASON_NO_MEMORY);
	return pass(skb);
}

/* Whether a reply that is on its way out of the device leaves the node by it. A bridge above
 * a client's port may be an uplink, too; the port itself comes after it. */
INLINE int leaves_here(const struct slot *flow, const struct device *d)
{
	u32 target = slot_target(flow);
	const struct port *out;

	if (d->kind != KIND_UPLINK)
		return 1;
	out = bpf_map_lookup_elem(&ports, &target);
	return !out || out->kind != KIND_POD;
}

#endif
