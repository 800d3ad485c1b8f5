/* SPDX-License-Identifier: GPL-2.0-only */
/* What the buckets of the flow table hold, small enough to stay in the cache: a packet that
 * no flow has reads one record and no slot. fastpath/conntrack owns layout and rules. */
#ifndef LACE_TAG_H
#define LACE_TAG_H

#include "types.h"

/* A byte of tags for each slot, the first one's lowest; 0: free. A slot may hold another
 * tuple than its tag promises, by chance or since it was read. */
struct record {
	u64 tags;
	u32 overflow; /* flows that have this as their first bucket and live in their second */
	u32 spill;    /* flows that have this as their near bucket and live in their first or second */
};

_Static_assert(sizeof(struct record) == 16, "four records are a cache line");

/* max_entries is set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct record);
} flow_tags SEC(".maps");

#define EVERY_BYTE 0x0101010101010101ULL
#define LOW_OF_BYTES 0x7f7f7f7f7f7f7f7fULL

/* 1 to 255. What is below chooses buckets. */
INLINE u8 tag_of(u64 hash)
{
	u8 tag = hash >> 56;

	return tag ? tag : 1;
}

/* The highest bit of each byte of tags that is tag, and no other. */
INLINE u64 tags_equal(u64 tags, u8 tag)
{
	u64 x = tags ^ tag * EVERY_BYTE;

	return ~(((x & LOW_OF_BYTES) + LOW_OF_BYTES) | x | LOW_OF_BYTES);
}

/* The byte, 0 to 7, in which the lowest of such bits lies: the product moves one byte of
 * the constant to the top. */
INLINE u32 tags_lowest(u64 marks)
{
	return (((marks & -marks) >> 7) * 0x0001020304050607ULL) >> 56;
}

#endif
