/* SPDX-License-Identifier: GPL-2.0-only */
/* In on lace0: what Go sends, to be delivered or given back. */
#ifndef LACE_INJECT_H
#define LACE_INJECT_H

#include "counter.h"
#include "parse.h"
#include "port.h"
#include "trunk.h"

/* The addresses of the last hop to a pod, destination first. */
INLINE int restore_macs(struct __sk_buff *skb, const struct port *p)
{
	return bpf_skb_store_bytes(skb, 0, p->peer_mac, 12, 0);
}

/* The addresses that a packet bears when it comes in on the port. Who sent it to an uplink
 * is not known any more, and the stack does not ask. */
INLINE int swap_macs(struct __sk_buff *skb, const struct port *p)
{
	if (p->kind == KIND_POD && bpf_skb_store_bytes(skb, 6, p->peer_mac, 6, 0))
		return -1;
	return bpf_skb_store_bytes(skb, 0, p->host_mac, 6, 0);
}

/* Out through an uplink: the kernel finds route and neighbour, the egress hook lets it by. */
INLINE int send_on(struct __sk_buff *skb, const struct port *p)
{
	skb->mark = MARK_SKIP_ONCE;
	return bpf_redirect_neigh(p->ifindex, 0, 0, 0);
}

INLINE int deliver(struct __sk_buff *skb, const struct port *p)
{
	switch (p->kind) {
	case KIND_POD:
		if (restore_macs(skb, p))
			return drop(skb, REASON_NO_MEMORY);
		return bpf_redirect_peer(p->ifindex, 0);
	case KIND_UPLINK:
		return send_on(skb, p);
	}
	/* The node itself. What was met on its way out is not addressed to lace0. */
	if (skb->pkt_type != PACKET_HOST)
		bpf_skb_change_type(skb, PACKET_HOST);
	return NEXT;
}

INLINE int give_back(struct __sk_buff *skb, const struct port *p)
{
	if (p->kind == KIND_HOST)
		return drop(skb, REASON_UNALLOCATED_VIP); /* its way led here and nowhere else */
	if (swap_macs(skb, p))
		return drop(skb, REASON_NO_MEMORY);
	skb->mark = MARK_SKIP_ONCE;
	return bpf_redirect(p->ifindex, BPF_F_INGRESS);
}

/* The next hop is in the frame still. */
INLINE int resume(struct __sk_buff *skb, const struct port *p)
{
	if (p->kind == KIND_HOST)
		return drop(skb, REASON_UNALLOCATED_VIP);
	if (bpf_skb_store_bytes(skb, 6, p->host_mac, 6, 0))
		return drop(skb, REASON_NO_MEMORY);
	skb->mark = MARK_SKIP_ONCE;
	return bpf_redirect(p->ifindex, 0);
}

INLINE int injected(struct __sk_buff *skb)
{
	u8 copy[ETH_HLEN], *frame = bytes(skb, 0, ETH_HLEN, copy);
	const struct port *p;
	u32 id, how;

	if (was_here(skb))
		return NEXT; /* a reply to the node itself, by the lane */
	if (!frame || !is_trunk(frame, TRUNK_INJECT))
		return drop(skb, REASON_FOREIGN_FRAME);
	how = frame[9];
	id = frame[10] << 8 | frame[11];
	p = bpf_map_lookup_elem(&ports, &id);
	if (!p || p->kind == KIND_NONE)
		return drop(skb, REASON_UNKNOWN_PORT_ID);
	if (how > HOW_RESUME)
		return drop(skb, REASON_FOREIGN_FRAME);
	count(COUNT_INJECTED, skb->len);
	if (how == HOW_DIRECT)
		return deliver(skb, p);
	return how == HOW_STACK ? give_back(skb, p) : resume(skb, p);
}

#endif
