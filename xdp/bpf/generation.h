/* SPDX-License-Identifier: GPL-2.0-only */
/* Generations of frontends, backends and targets: what a flow was decided by, and whether
 * it still is what it was. One store of Go's revokes every flow that a record concerns. */
#ifndef LACE_GENERATION_H
#define LACE_GENERATION_H

#include "port.h"
#include "types.h"

/* Ids from here on have no generation: their flows stay with Go. xdp/generations.go holds
 * the same numbers. */
#define FRONTEND_IDS 262144
#define BACKEND_IDS 1048576

#define GENERATION_EXISTS 0x10000 /* set in every entry that is there, whose generation may be 0 */

/* An array map rounds its elements up to eight bytes, so two entries make one. */
struct generations {
	u32 of[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FRONTEND_IDS / 2);
	__type(key, u32);
	__type(value, struct generations);
} frontend_gens SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BACKEND_IDS / 2);
	__type(key, u32);
	__type(value, struct generations);
} backend_gens SEC(".maps");

/* By port id. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS / 2);
	__type(key, u32);
	__type(value, struct generations);
} target_gens SEC(".maps");

INLINE int is_current(void *map, u32 id, u16 generation)
{
	u32 pair = id >> 1;
	const struct generations *g = bpf_map_lookup_elem(map, &pair);

	return g && READ_ONCE(g->of[id & 1]) == (GENERATION_EXISTS | generation);
}

#endif
