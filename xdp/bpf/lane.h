/* SPDX-License-Identifier: GPL-2.0-only */
/* The express lane: repeats what Go decided about a flow, or leaves the packet to Go with a
 * cause. It decides nothing itself. */
#ifndef LACE_LANE_H
#define LACE_LANE_H

#include "cause.h"
#include "decision.h"
#include "delivery.h"
#include "rewrite.h"
#include "stack.h"
#include "state.h"
#include "trunk.h"

/* Where a packet was met. */
struct place {
	enum hook hook;
	u32 here; /* id of the port whose hook it is */
	u32 from; /* id of the port from which it came; of a reply that the stack has routed, here */
	u32 network; /* of its addresses */
	u8 kind;  /* of that port */
};

/* What the lane needs to know of a transport header. */
struct transport {
	u8 len;   /* of the header, bytes */
	u8 flags; /* of TCP, else 0 */
};

INLINE u32 ip_len(const struct packet *p) { return p->v6 ? 40 : 20; }

/* IPv6 has no other checksum than UDP's, so that none is an error, which Go counts (RFC 8200,
 * section 8.1). */
INLINE int udp_has_checksum(struct __sk_buff *skb, const struct packet *p)
{
	u8 copy[2], *b;

	if (!p->v6)
		return 1;
	b = bytes(skb, ETH_HLEN + 40 + UDP_CHECK, 2, copy);
	return b && (b[0] | b[1]);
}

INLINE int transport_read(struct __sk_buff *skb, const struct packet *p, struct transport *t)
{
	u8 copy[2], *b;

	if (p->protocol == IPPROTO_UDP) {
		t->len = 8;
		t->flags = 0;
		return udp_has_checksum(skb, p);
	}
	if (p->protocol != IPPROTO_TCP)
		return 0;
	b = p->v6 ? bytes(skb, ETH_HLEN + 40 + 12, 2, copy) : bytes(skb, ETH_HLEN + 20 + 12, 2, copy);
	if (!b)
		return 0;
	t->len = b[0] >> 4 << 2;
	t->flags = b[1];
	return 1;
}

/* Whether the packet was met on the port where its flow is to be met: where it comes in, or,
 * as a reply that the stack has routed, where it leaves. Uplinks are one way into the node
 * and out of it: routes may change between them. */
INLINE int met_at_port(const struct decision *d, const struct place *at)
{
	u32 port = (d->flags & STACK_REPLY) == STACK_REPLY ? target_of(d) : d->in;
	const struct port *p;

	if (port == at->from)
		return 1;
	if (at->kind != KIND_UPLINK)
		return 0;
	p = bpf_map_lookup_elem(&ports, &port);
	return p && p->kind == KIND_UPLINK;
}

INLINE int outlives(struct __sk_buff *skb, const struct packet *p)
{
	u8 copy, *ttl = p->v6 ? bytes(skb, ETH_HLEN + 7, 1, &copy) : bytes(skb, ETH_HLEN + 8, 1, &copy);

	return ttl && *ttl > 1;
}

/* A packet of several segments is cut on its way, each of them has to fit. */
INLINE int fits_port(struct __sk_buff *skb, const struct packet *p, const struct transport *t, const struct port *out)
{
	u32 len = skb->len - ETH_HLEN;

	if (skb->gso_size)
		len = ip_len(p) + t->len + skb->gso_size;
	return len <= out->mtu;
}

/* What opens goes by Go, as far as it can. */
INLINE int is_carried(struct __sk_buff *skb, const struct settings *s, u8 mode)
{
	return mode == MODE_LANE || (mode == MODE_OPENING && !fits_trunk(skb, s));
}

/* Whether the decision may be repeated on this packet, checked in the order of their cost. */
INLINE enum cause check_lane(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
			     struct slot *slot, const struct place *at, struct decision *d, struct transport *t)
{
	if (!s->lane || !is_carried(skb, s, READ_ONCE(slot->mode)))
		return CAUSE_GO_MODE;
	if (!p->plain || !transport_read(skb, p, t))
		return CAUSE_HEADER;
	if ((t->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		return CAUSE_SYN;
	if (!decision_copy(s, slot, flow_key(p, at->network), p, d))
		return CAUSE_TORN;
	if (!is_carried(skb, s, d->mode))
		return CAUSE_GO_MODE;
	if (!decision_holds(d))
		return CAUSE_GENERATION;
	return met_at_port(d, at) ? SETTLED : CAUSE_PORT;
}

INLINE enum cause check_out(struct __sk_buff *skb, const struct packet *p, const struct transport *t,
			    const struct port *out, const struct hop *hop)
{
	if (hop->down && !outlives(skb, p))
		return CAUSE_TTL;
	if (out->kind != KIND_HOST && !fits_port(skb, p, t, out))
		return CAUSE_MTU;
	return SETTLED;
}

/* A large datagram of the node's own; see fix_pseudo. */
INLINE int is_uncut(struct __sk_buff *skb, const struct packet *p, enum hook hook)
{
	return hook != INGRESS && p->protocol == IPPROTO_UDP && skb->gso_size;
}

INLINE int fix_checksum(struct __sk_buff *skb, const struct packet *p, const struct decision *d, enum hook hook)
{
	const u32 l4 = ETH_HLEN + ip_len(p);

	if (is_uncut(skb, p, hook))
		return fix_pseudo(skb, d, l4);
	return fix_transport(skb, p, d, l4);
}

INLINE int rewrite(struct __sk_buff *skb, const struct packet *p, const struct decision *d, const struct hop *hop)
{
	return p->v6 ? rewrite6(skb, d, hop) : rewrite4(skb, d, hop);
}

/* What the packet's flow was delivered by, and whether the packet fits. The stack checks what
 * it routes itself. */
INLINE enum cause find_way(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
			   const struct transport *t, const struct decision *d, const struct place *at,
			   struct course *c)
{
	u32 target = target_of(d);

	c->way = ON;
	if (d->flags & FLAG_STACK)
		return SETTLED;
	c->out = bpf_map_lookup_elem(&ports, &target);
	if (!c->out || c->out->kind == KIND_NONE)
		return CAUSE_GENERATION;
	c->way = way_to(c->out, target, at->hook, at->here, d->flags);
	c->hop = hop_by(c->way, s, c->out, at->hook);
	return check_out(skb, p, t, c->out, &c->hop);
}

/* SETTLED: the packet is done with, *verdict is the program's. */
INLINE enum cause lane(struct __sk_buff *skb, const struct settings *s, const struct packet *p, struct slot *slot,
		       const struct place *at, int *verdict)
{
	struct decision d = {};
	struct transport t = {};
	struct course c = {};
	enum cause cause = check_lane(skb, s, p, slot, at, &d, &t);

	if (cause)
		return cause;
	cause = find_way(skb, s, p, &t, &d, at, &c);
	if (cause)
		return cause;
	if (c.way == UP && is_uncut(skb, p, at->hook))
		return CAUSE_HEADER; /* no device that would cut it, and finish its checksum, lies on its way */
	if (fix_checksum(skb, p, &d, at->hook))
		return CAUSE_HEADER;
	if (rewrite(skb, p, &d, &c.hop)) {
		count(COUNT_CLAIMED, skb->len);
		*verdict = drop(skb, REASON_NO_MEMORY);
		return SETTLED;
	}
	touch(slot, d.incarnation, state_of(t.flags));
	count(d.flags & FLAG_REPLY ? REASON_REPLY : REASON_ESTABLISHED, skb->len);
	*verdict = send(skb, s, &c);
	return SETTLED;
}

#endif
