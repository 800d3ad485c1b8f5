/* SPDX-License-Identifier: GPL-2.0-only */
/* The flow table that Go writes: an array of 128-byte slots in buckets of eight, slot 0
 * being the header. fastpath/conntrack owns layout and hash; this is the reader. */
#ifndef LACE_FLOW_H
#define LACE_FLOW_H

#include "parse.h"
#include "settings.h"
#include "tag.h"
#include "types.h"

#define BUCKET_SLOTS 8
#define NEAR_MASK 0xfff /* number of near buckets, less one */
#define NEAR_SHIFT 20   /* of the hash */

enum {
	MODE_GO = 0,
	MODE_LANE = 1,
	MODE_PASS = 2,
	MODE_OPENING = 3, /* Go, but for what is too long for the trunk */
};

#define FLAG_REPLY 1  /* backend to client */
#define FLAG_STACK 16 /* the kernel routes it on from where it was met; see stack.h */

struct slot {
	/* First cache line: all that IPv4 needs. */
	u32 seq;           /* odd: being written */
	u8 pad;
	u8 mode;
	u8 flags;
	u8 pad2;
	u64 key;           /* see flow_key */
	u32 src, dst;      /* last words */
	u32 new_src, new_dst;
	u32 new_ports;
	u16 l3;            /* what the new addresses add to a checksum, RFC 1624 */
	u16 in;            /* id of the port on which packets come in */
	u32 frontend, backend;
	u64 state;         /* last seen, bits, incarnation: see state.h */
	u64 stamp;         /* target, generations of frontend, backend, target: 16 bits each */
	/* Second cache line: the other words of IPv6 addresses, and Go's own. */
	u32 high_src[3], high_dst[3], high_new_src[3], high_new_dst[3];
	u32 peer, packets, created, spare;
};

_Static_assert(sizeof(struct slot) == 128, "a slot is two cache lines");

/* max_entries is set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 + BUCKET_SLOTS);
	__type(key, u32);
	__type(value, struct slot);
} flows SEC(".maps");

/* sport | dport << 16 | protocol << 32 | network << 40 | IPv6 << 62 | used << 63 */
INLINE u64 flow_key(const struct packet *p, u32 network)
{
	return p->ports | (u64)p->protocol << 32 | (u64)(network & 0x3fffff) << 40 |
	       (u64)p->v6 << 62 | 1ULL << 63;
}

/* One term of the keyed universal hash (NH, RFC 4418 section 5.2.2). */
INLINE u64 nh(const u32 *k, u32 a, u32 b)
{
	return (u64)(u32)(a + k[0]) * (u32)(b + k[1]);
}

/* Spreads what NH leaves in some of the bits over all of them. */
INLINE u64 mix(u64 h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	return h ^ h >> 32;
}

INLINE u64 flow_hash(const u32 *k, u64 key, const struct packet *p)
{
	u64 h = nh(k, key, key >> 32) + nh(k + 2, p->src[3], p->dst[3]);

	if (p->v6)
		h += nh(k + 4, p->src[0], p->src[1]) + nh(k + 6, p->src[2], p->dst[0]) +
		     nh(k + 8, p->dst[1], p->dst[2]);
	return mix(h);
}

INLINE int slot_matches(const struct slot *s, u64 key, const struct packet *p)
{
	if (READ_ONCE(s->key) != key || READ_ONCE(s->src) != p->src[3] || READ_ONCE(s->dst) != p->dst[3])
		return 0;
	if (!p->v6)
		return 1;
	return !((s->high_src[0] ^ p->src[0]) | (s->high_src[1] ^ p->src[1]) | (s->high_src[2] ^ p->src[2]) |
		 (s->high_dst[0] ^ p->dst[0]) | (s->high_dst[1] ^ p->dst[1]) | (s->high_dst[2] ^ p->dst[2]));
}

INLINE struct slot *bucket_find(u32 bucket, const struct record *r, u8 tag, u64 key, const struct packet *p)
{
	u64 marks = tags_equal(READ_ONCE(r->tags), tag);

	for (int i = 0; i < BUCKET_SLOTS && marks; i++) {
		u32 index = 1 + bucket * BUCKET_SLOTS + tags_lowest(marks);
		struct slot *s = bpf_map_lookup_elem(&flows, &index);

		if (!s)
			return 0;
		if (slot_matches(s, key, p))
			return s;
		marks &= marks - 1;
	}
	return 0;
}

/* The slot of a packet's tuple, or 0. Nothing but the tuple was compared: a reader of the
 * rewrite must copy it and check seq before and after. */
INLINE struct slot *flow_find(const struct settings *s, const struct packet *p, u32 network)
{
	u64 key = flow_key(p, network);
	u64 hash = flow_hash(s->flow_keys, key, p);
	u32 bucket = hash >> NEAR_SHIFT & NEAR_MASK & s->flow_mask;
	const struct record *r = bpf_map_lookup_elem(&flow_tags, &bucket);
	struct slot *slot;

	if (!r)
		return 0;
	slot = bucket_find(bucket, r, tag_of(hash), key, p);
	if (slot || !READ_ONCE(r->spill))
		return slot;
	bucket = hash & s->flow_mask;
	r = bpf_map_lookup_elem(&flow_tags, &bucket);
	if (!r)
		return 0;
	slot = bucket_find(bucket, r, tag_of(hash), key, p);
	if (slot || !READ_ONCE(r->overflow))
		return slot;
	bucket = hash >> 32 & s->flow_mask;
	r = bpf_map_lookup_elem(&flow_tags, &bucket);
	return r ? bucket_find(bucket, r, tag_of(hash), key, p) : 0;
}

#endif
