/* SPDX-License-Identifier: GPL-2.0-only */
/* The Ethernet source address on the hop between lace0 and lace1 says what a frame is; the
 * destination is lace0's real address, or, of a packet met on its way out of a port, that of
 * its next hop, which it keeps. fastpath/packet/trunk.go holds the same.
 *
 *	kernel to Go: 02:4c:50:WHY:PORT_HI:PORT_LO
 *	Go to kernel: 02:4c:49:HOW:PORT_HI:PORT_LO
 */
#ifndef LACE_TRUNK_H
#define LACE_TRUNK_H

#include "settings.h"
#include "types.h"

#define TRUNK_0 0x02
#define TRUNK_1 0x4c
#define TRUNK_PUNT 0x50
#define TRUNK_INJECT 0x49

/* Where a packet is met. */
enum hook {
	INGRESS, /* in on a port */
	EGRESS,  /* out of a port */
	HOST,    /* out of lace0: it is on the trunk already */
};

/* Why a packet was punted. */
enum {
	WHY_FLOW = 0, /* its tuple is in the flow table */
	WHY_VIP = 1,  /* its destination is claimed */
	WHY_CUT = 0x40,    /* longer than the trunk takes: this is its beginning */
	WHY_EGRESS = 0x80, /* met on its way out of the port, not in */
};

/* What is to become of an injected packet. */
enum {
	HOW_DIRECT = 0, /* deliver out of the port; host: up the node's stack */
	HOW_STACK = 1,  /* to the node's stack, as if it had come in on the port */
	HOW_RESUME = 2, /* on out of the port, to the next hop that the stack has found */
};

/* A packet with this mark is let by once at the hook that it meets next. */
#define MARK_SKIP_ONCE 0x1ace0001

/* Given back by Go, or on its way from Go or the lane: not claimed a second time. */
INLINE int was_here(struct __sk_buff *skb)
{
	if (skb->mark != MARK_SKIP_ONCE)
		return 0;
	skb->mark = 0;
	return 1;
}

INLINE int is_trunk(const u8 *frame, u8 kind)
{
	return frame[6] == TRUNK_0 && frame[7] == TRUNK_1 && frame[8] == kind;
}

/* The kernel drops what is too long for a veth without a word, so it is done here. A packet
 * of several segments is cut on its way, each of them has to fit. */
INLINE int fits_trunk(struct __sk_buff *skb, const struct settings *s)
{
	u32 len = 0;

	if (skb->len <= s->mtu + ETH_HLEN)
		return 1;
	return skb->gso_size && bpf_check_mtu(skb, s->trunk, &len, 0, BPF_MTU_CHK_SEGS) == 0;
}

#endif
