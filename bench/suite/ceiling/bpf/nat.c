//go:build ignore

/* SPDX-License-Identifier: GPL-2.0-only */
/* The least that can be done for a UDP packet of a service: look the flow up, rewrite, and
 * redirect, in XDP, before the kernel has made a packet buffer. No checks, no expiry. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define INLINE static __always_inline

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;

struct tuple {
	u32 src, dst;
	u16 sport, dport;
};

struct rewrite {
	struct tuple to;
	u16 l3, l4; /* what is added to the sums under the checksums */
	u8 macs[12];
	u32 device; /* index into devices */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 524288);
	__type(key, struct tuple);
	__type(value, struct rewrite);
} flows SEC(".maps");

/* bench/suite/ceiling/ceiling.go holds the same records. */
struct frontend {
	u32 addr;
	u16 port;
	u16 pad;
};

struct run {
	u32 first, count; /* of backends */
};

struct hop {
	u32 addr;
	u16 port;
	u16 device;
	u8 macs[12]; /* destination, source */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct frontend);
	__type(value, struct run);
} frontends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, struct hop);
} backends SEC(".maps");

/* Where the client is: device and addresses of the last hop. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hop);
} clients SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct bpf_devmap_val);
} devices SEC(".maps");

/* Keeps the compiler from adding to a pointer before it is known not to be 0, which the
 * verifier does not let by. */
#define CHECKED(pointer) asm volatile("" : "+r"(pointer))

INLINE u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

INLINE u32 halves(u32 v)
{
	return (v & 0xffff) + (v >> 16);
}

/* RFC 1624: the new field is ~(~old + ~from + to). */
INLINE void differences(struct rewrite *r, const struct tuple *from)
{
	u32 before = halves(from->src) + halves(from->dst), after = halves(r->to.src) + halves(r->to.dst);

	r->l3 = fold((u16)~fold(before) + (u32)fold(after));
	before += from->sport + from->dport;
	after += r->to.sport + r->to.dport;
	r->l4 = fold((u16)~fold(before) + (u32)fold(after));
}

INLINE u16 adjusted(u16 check, u16 difference)
{
	return ~fold((u32)(u16)~check + difference);
}

INLINE void apply(struct ethhdr *eth, struct iphdr *ip, struct udphdr *udp, const struct rewrite *r)
{
	__builtin_memcpy(eth, r->macs, sizeof(r->macs));
	ip->saddr = r->to.src;
	ip->daddr = r->to.dst;
	ip->ttl--;
	ip->check = adjusted(adjusted(ip->check, r->l3), 0xfffe);
	udp->source = r->to.sport;
	udp->dest = r->to.dport;
	if (udp->check) {
		udp->check = adjusted(udp->check, r->l4);
		if (!udp->check)
			udp->check = 0xffff;
	}
}

INLINE void remember(struct rewrite *r, const struct tuple *from, const struct hop *to)
{
	__builtin_memcpy(r->macs, to->macs, sizeof(r->macs));
	r->device = to->device;
	differences(r, from);
	bpf_map_update_elem(&flows, from, r, BPF_ANY);
}

/* A new flow: chooses a backend and registers both directions. */
INLINE int open_flow(const struct tuple *t, struct rewrite *r)
{
	struct frontend f = { .addr = t->dst, .port = t->dport };
	struct rewrite back = {};
	struct tuple reply;
	struct run *run = bpf_map_lookup_elem(&frontends, &f);
	struct hop *backend, *client;
	u32 zero = 0, index;

	if (!run)
		return -1;
	CHECKED(run);
	if (!run->count)
		return -1;
	index = run->first + bpf_get_prandom_u32() % run->count;
	backend = bpf_map_lookup_elem(&backends, &index);
	client = bpf_map_lookup_elem(&clients, &zero);
	if (!backend || !client)
		return -1;
	CHECKED(backend);
	CHECKED(client);
	r->to = (struct tuple){ t->src, backend->addr, t->sport, backend->port };
	remember(r, t, backend);
	reply = (struct tuple){ backend->addr, t->src, backend->port, t->sport };
	back.to = (struct tuple){ t->dst, t->src, t->dport, t->sport };
	remember(&back, &reply, client);
	return 0;
}

SEC("xdp")
int nat(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = start;
	struct iphdr *ip = start + sizeof(*eth);
	struct udphdr *udp = (void *)ip + sizeof(*ip);
	struct rewrite fresh = {}, *r;
	struct tuple t;

	if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 || ip->protocol != IPPROTO_UDP)
		return XDP_PASS;
	t = (struct tuple){ ip->saddr, ip->daddr, udp->source, udp->dest };
	r = bpf_map_lookup_elem(&flows, &t);
	if (!r) {
		if (open_flow(&t, &fresh))
			return XDP_PASS;
		r = &fresh;
	}
	CHECKED(r);
	apply(eth, ip, udp, r);
	return bpf_redirect_map(&devices, r->device, 0);
}

char _license[] SEC("license") = "GPL";
