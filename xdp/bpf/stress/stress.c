//go:build ignore
/* SPDX-License-Identifier: GPL-2.0-only */
/* Looks flows up as the lane does, as fast as it goes, while Go writes them, and holds what
 * it copies to what Go writes: every word of a decision follows from the client and from
 * one number, so that a mixture of two decisions shows. xdp/stress_test.go holds the same. */

#include "../decision.h"
#include "../state.h"

struct tally {
	u64 hits, misses, torn, wrong;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tally);
} tally SEC(".maps");

struct work {
	u64 random;
	const struct settings *s;
	struct tally t;
	u32 clients;   /* a power of two */
	u32 unchecked; /* 1: take what is there, without looking at the sequence */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct work);
} work SEC(".maps");

#define VIP 0x0100600a

INLINE void client_packet(u32 client, struct packet *p)
{
	p->ports = 0x5000a00f;
	p->protocol = IPPROTO_UDP;
	p->src[3] = client;
	p->dst[3] = VIP;
	p->v6 = client & 1;
	if (p->v6) {
		p->src[0] = p->dst[0] = 0xfd;
		p->src[1] = client * 3;
		p->dst[2] = 0x96;
	} else {
		p->src[2] = p->dst[2] = MAPPED;
	}
}

INLINE int is_mixed(const struct decision *d, u32 client, int v6)
{
	u32 n = d->frontend, x = n * 0x9e3779b1 ^ client, y = n * 0x85ebca6b ^ client, z = n * 0xc2b2ae35 ^ client;
	u64 stamp = (u64)y << 32 | z;

	if (d->new_src != x || d->new_dst != y || d->new_ports != z || d->backend != (x ^ y))
		return 1;
	if (d->stamp != stamp || d->l3 != (u16)(x + 1) || d->in != (u16)(y + 1) || d->mode != MODE_LANE)
		return 1;
	if (!v6)
		return 0;
	for (u32 i = 0; i < 3; i++)
		if (d->high_new_src[i] != ((x + i) | 1) || d->high_new_dst[i] != ((z + i) | 1))
			return 1;
	return 0;
}

static long look_up(u32 i, struct work *w)
{
	struct decision d = {};
	struct packet p = {};
	struct slot *slot;
	u32 client;

	w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
	client = w->random >> 33 & (w->clients - 1);
	client_packet(client, &p);
	slot = flow_find(w->s, &p, 0);
	if (!slot || READ_ONCE(slot->mode) != MODE_LANE) {
		w->t.misses++;
		return 0;
	}
	if (w->unchecked) {
		decision_read(slot, &p, &d);
	} else if (!decision_copy(w->s, slot, flow_key(&p, 0), &p, &d) || d.mode != MODE_LANE) {
		w->t.torn++;
		return 0;
	}
	w->t.hits++;
	if (is_mixed(&d, client, p.v6))
		w->t.wrong++;
	if (!w->unchecked && !(client & 2)) /* the others must never bear this note */
		touch(slot, d.incarnation, STATE_SEEN | STATE_FIN);
	return 0;
}

SEC("tc")
int stress(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct work *w = bpf_map_lookup_elem(&work, &zero), copy;
	struct tally *t = bpf_map_lookup_elem(&tally, &zero);

	if (!w || !t)
		return 0;
	copy = *w;
	copy.s = settings_get();
	if (!copy.s)
		return 0;
	bpf_loop(skb->mark, look_up, &copy, 0);
	w->random = copy.random;
	t->hits += copy.t.hits;
	t->misses += copy.t.misses;
	t->torn += copy.t.torn;
	t->wrong += copy.t.wrong;
	return 0;
}

char _license[] SEC("license") = "GPL";
