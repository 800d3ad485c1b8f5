/* SPDX-License-Identifier: GPL-2.0-only */
/* What Go decided about a flow, copied out of its slot while Go may be writing there. */
#ifndef LACE_DECISION_H
#define LACE_DECISION_H

#include "flow.h"
#include "generation.h"
#include "types.h"

struct decision {
	u64 stamp;
	u32 new_src, new_dst;
	u32 high_new_src[3], high_new_dst[3]; /* IPv6 only */
	u32 new_ports;
	u32 frontend, backend;
	u16 l3;
	u16 in;
	u16 incarnation;
	u8 flags;
	u8 mode;
};

/* The sequence, read after everything that was read before it and before everything that
 * will be. Processors that keep loads in order need nothing for that. */
INLINE u32 sequence(const struct settings *s, struct slot *slot)
{
	u32 seq;

	barrier();
	if (s->weak_order)
		seq = __sync_fetch_and_add(&slot->seq, 0);
	else
		seq = READ_ONCE(slot->seq);
	barrier();
	return seq;
}

INLINE void copy_high(struct decision *d, const struct slot *slot)
{
	for (int i = 0; i < 3; i++) {
		d->high_new_src[i] = READ_ONCE(slot->high_new_src[i]);
		d->high_new_dst[i] = READ_ONCE(slot->high_new_dst[i]);
	}
}

/* Whatever the slot holds, a mixture perhaps. */
INLINE void decision_read(const struct slot *slot, const struct packet *p, struct decision *d)
{
	d->new_src = READ_ONCE(slot->new_src);
	d->new_dst = READ_ONCE(slot->new_dst);
	d->new_ports = READ_ONCE(slot->new_ports);
	d->l3 = READ_ONCE(slot->l3);
	d->in = READ_ONCE(slot->in);
	d->frontend = READ_ONCE(slot->frontend);
	d->backend = READ_ONCE(slot->backend);
	d->stamp = READ_ONCE(slot->stamp); /* at once: Go changes it without the sequence */
	d->flags = READ_ONCE(slot->flags);
	d->mode = READ_ONCE(slot->mode);
	if (p->v6)
		copy_high(d, slot);
}

/* Copies the decision about a packet's flow out of a slot that held its tuple a moment ago.
 * 0: somebody was writing there, or it holds another flow by now. */
INLINE int decision_copy(const struct settings *s, struct slot *slot, u64 key, const struct packet *p,
			 struct decision *d)
{
	u32 seq = sequence(s, slot);

	if (seq & 1 || !slot_matches(slot, key, p))
		return 0;
	decision_read(slot, p, d);
	d->incarnation = seq >> 1;
	return sequence(s, slot) == seq;
}

INLINE u16 target_of(const struct decision *d) { return d->stamp; }

/* Whether everything that the flow was decided by is what it was then. */
INLINE int decision_holds(const struct decision *d)
{
	return is_current(&frontend_gens, d->frontend, d->stamp >> 16) &&
	       is_current(&backend_gens, d->backend, d->stamp >> 32) &&
	       is_current(&target_gens, target_of(d), d->stamp >> 48);
}

#endif
