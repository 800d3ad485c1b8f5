/* SPDX-License-Identifier: GPL-2.0-only */
/* Destinations whose packets are Lace's. */
#ifndef LACE_CLAIM_H
#define LACE_CLAIM_H

#include "parse.h"
#include "settings.h"
#include "types.h"

/* Protocol and port 0: every packet to the address. xdp/claims.go holds the same record. */
struct claim {
	u32 network;
	u32 addr[4];
	u16 port; /* network order */
	u8 protocol;
	u8 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct claim);
	__type(value, u32);
} claims SEC(".maps");

/* One bit for each claimed address, some shared: it tells most other packets from claimed
 * ones for a fraction of a hash look-up. xdp/filter.go writes it. */
struct filter {
	u64 bits[1024];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct filter);
} claim_filter SEC(".maps");

INLINE int filter_has(void *map, const u32 *a)
{
	u32 zero = 0, bit = (a[0] ^ a[1] ^ a[2] ^ a[3]) * 0x9e3779b1 >> 16;
	const struct filter *f = bpf_map_lookup_elem(map, &zero);

	return f && f->bits[bit >> 6] >> (bit & 63) & 1;
}

INLINE int may_be_claimed(const u32 *a) { return filter_has(&claim_filter, a); }

INLINE int is_claimed(const struct settings *s, const struct packet *p, u32 network)
{
	struct claim c = { .network = network };

	if (!may_be_claimed(p->dst))
		return 0;
	__builtin_memcpy(c.addr, p->dst, sizeof(c.addr));
	if (bpf_map_lookup_elem(&claims, &c))
		return 1;
	if (!s->narrow || !p->has_ports)
		return 0;
	c.port = p->ports >> 16;
	c.protocol = p->protocol;
	return bpf_map_lookup_elem(&claims, &c) != 0;
}

#endif
