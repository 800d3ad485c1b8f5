/* SPDX-License-Identifier: GPL-2.0-only */
/* The ways of a rewritten packet from the hook where it was met to its target, none of them
 * another than Go's own frames would take. */
#ifndef LACE_DELIVERY_H
#define LACE_DELIVERY_H

#include "counter.h"
#include "port.h"
#include "rewrite.h"
#include "trunk.h"

enum way {
	ON,    /* on where it goes already: up the stack from the device on which it came, or out of its device */
	PEER,  /* into the pod, past its device's queue */
	OUT,   /* out of the pod's device */
	NEIGH, /* out of an uplink, to the neighbour that the kernel's routes name */
	UP,    /* up the node's stack from lace0 */
};

/* A way, and what there is to know about it. */
struct course {
	enum way way;
	const struct port *out; /* 0 for flows that the stack routes */
	struct hop hop;
};

/* A backend in the node's own stack gets its packets from the device on which they came, so
 * that reverse path filters are content; a client there gets its replies from where the
 * service addresses are routed to. */
INLINE enum way way_to(const struct port *out, u32 target, enum hook hook, u32 here, u8 flags)
{
	switch (out->kind) {
	case KIND_HOST:
		return hook == INGRESS && !(flags & FLAG_REPLY) ? ON : UP;
	case KIND_UPLINK:
		return hook == EGRESS && target == here ? ON : NEIGH;
	}
	if (hook == INGRESS)
		return PEER;
	return hook == EGRESS && target == here ? ON : OUT;
}

INLINE struct hop hop_by(enum way way, const struct settings *s, const struct port *out, enum hook hook)
{
	struct hop hop = { .down = hook == INGRESS && out->kind != KIND_HOST };

	if (way == PEER || way == OUT) {
		hop.macs = out->peer_mac;
		hop.macs_len = 12;
	} else if (way == UP) {
		hop.macs = s->mac;
		hop.macs_len = 6;
	}
	return hop;
}

/* The mark lets the packet by at the hook of the device to which it goes. */
INLINE int send(struct __sk_buff *skb, const struct settings *s, const struct course *c)
{
	const struct port *out = c->out;

	if (c->way == ON || !out)
		return NEXT;
	switch (c->way) {
	case ON:
		break;
	case PEER:
		/* A pod behind a bridge sends to the bridge: "to another host", says its device. */
		if (skb->pkt_type != PACKET_HOST)
			bpf_skb_change_type(skb, PACKET_HOST);
		return bpf_redirect_peer(out->ifindex, 0);
	case OUT:
		skb->mark = MARK_SKIP_ONCE;
		return bpf_redirect(out->ifindex, 0);
	case NEIGH:
		skb->mark = MARK_SKIP_ONCE;
		return bpf_redirect_neigh(out->ifindex, 0, 0, 0);
	case UP:
		skb->mark = MARK_SKIP_ONCE;
		return bpf_redirect(s->trunk, BPF_F_INGRESS);
	}
	return DROP;
}

#endif
