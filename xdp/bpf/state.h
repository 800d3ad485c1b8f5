/* SPDX-License-Identifier: GPL-2.0-only */
/* The state word of a slot: last seen (ticks) | bits << 32 | incarnation << 48. Go and the
 * lane both note what they see in it. fastpath/conntrack owns the rules. */
#ifndef LACE_STATE_H
#define LACE_STATE_H

#include "flow.h"
#include "types.h"

/* conntrack.State. */
enum {
	STATE_SEEN = 1,
	STATE_SYN = 2,
	STATE_ACK = 4,
	STATE_FIN = 8,
	STATE_RST = 16,
};

/* The flags byte of a TCP header (RFC 9293, section 3.1). */
enum {
	TCP_FIN = 1,
	TCP_SYN = 2,
	TCP_RST = 4,
	TCP_ACK = 16,
};

#define TICK_SHIFT 26 /* nanoseconds to ticks, conntrack.TickShift */
#define TOUCHES 4     /* attempts; each is lost to somebody who noted something, too */

/* What a packet adds to the state of its direction; an RST says nothing but that. */
INLINE u32 state_of(u8 flags)
{
	u32 bits = STATE_SEEN;

	if (flags & TCP_RST)
		return bits | STATE_RST;
	if (flags & TCP_SYN)
		bits |= STATE_SYN;
	else if (flags & TCP_ACK)
		bits |= STATE_ACK;
	return flags & TCP_FIN ? bits | STATE_FIN : bits;
}

/* The state word after a packet. Who still talks has not reset: data takes an RST back. */
INLINE u64 touched(u64 word, u32 bits, u32 now)
{
	u32 seen = word, all = word >> 32;

	if ((int)(now - seen) > 0)
		seen = now;
	if ((bits & (STATE_ACK | STATE_RST)) == STATE_ACK)
		all &= ~STATE_RST;
	return seen | (u64)(all | bits) << 32;
}

/* Notes a packet, unless the slot has come to hold another flow. */
INLINE void touch(struct slot *slot, u16 incarnation, u32 bits)
{
	u32 now = bpf_ktime_get_coarse_ns() >> TICK_SHIFT;
	u64 word = READ_ONCE(slot->state);

	for (int i = 0; i < TOUCHES; i++) {
		u64 next = touched(word, bits, now), seen;

		if ((u16)(word >> 48) != incarnation || next == word)
			return;
		seen = __sync_val_compare_and_swap(&slot->state, word, next);
		if (seen == word)
			return;
		word = seen;
	}
}

#endif
