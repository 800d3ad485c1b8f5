//go:build ignore

/* SPDX-License-Identifier: GPL-2.0-only */
/* The two ends of a load of UDP frames: what makes them and what takes them. */
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
typedef __u64 u64;

#define PASS -1 /* TCX_NEXT */
#define DROP 2  /* TCX_DROP */

#define FRAME (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))

/* What to make. Addresses and ports are as they lie in a packet, but for first_address and
 * first_port, which are numbers. bench/load/frames.go holds the same record. */
struct plan {
	u8 macs[12];       /* destination, source */
	u16 target_port;
	u16 first_port;    /* of the sources; they have 2^15 ports each */
	u32 target;
	u32 first_address; /* of the sources */
	u32 first_flow;
	u32 mask;          /* number of flows, less one; a power of two less one */
	u32 next;          /* counts frames */
	u32 ip_sum;        /* sums of the fields that do not change, not folded */
	u32 udp_sum;
	u32 pad;
	u64 made;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct plan);
} plans SEC(".maps");

INLINE u32 halves(u32 v)
{
	return (v & 0xffff) + (v >> 16);
}

INLINE u16 fold(u32 sum)
{
	return ~halves(halves(sum));
}

/* Flows come in scrambled order: an odd factor is a permutation of a power of two. */
SEC("xdp")
int make(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = start;
	struct iphdr *ip = start + sizeof(*eth);
	struct udphdr *udp = (void *)ip + sizeof(*ip);
	u32 zero = 0, flow;
	struct plan *p = bpf_map_lookup_elem(&plans, &zero);
	u16 length = end - start;

	if (!p || start + FRAME > end)
		return XDP_ABORTED;
	flow = p->first_flow + (p->next++ * 0x9e3779b1 & p->mask);
	p->made++;
	__builtin_memcpy(eth, p->macs, sizeof(p->macs));
	eth->h_proto = bpf_htons(ETH_P_IP);
	*(u16 *)ip = bpf_htons(0x4500); /* version, header length, no class */
	ip->tot_len = bpf_htons(length - sizeof(*eth));
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000); /* do not fragment */
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = bpf_htonl(p->first_address + (flow >> 15));
	ip->daddr = p->target;
	ip->check = fold(p->ip_sum + halves(ip->saddr));
	udp->source = bpf_htons(p->first_port + (flow & 0x7fff));
	udp->dest = p->target_port;
	udp->len = bpf_htons(length - sizeof(*eth) - sizeof(*ip));
	udp->check = fold(p->udp_sum + halves(ip->saddr) + udp->source);
	return XDP_TX;
}

enum {
	MODE_PASS = 0,   /* nothing is taken */
	MODE_SWALLOW = 1,
	MODE_ANSWER = 2, /* sent back from where it was addressed to */
};

/* What to take: UDP to, or from, a port. bench/load/sink.go holds the same record. */
struct wanted {
	u32 mode;
	u16 port;  /* as it lies in a packet */
	u16 reply; /* 1: the source port is compared */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wanted);
} wanteds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} taken SEC(".maps");

/* Exchanging source and destination changes no checksum. */
INLINE void turn(struct ethhdr *eth, struct iphdr *ip, struct udphdr *udp)
{
	u8 mac[ETH_ALEN];
	u32 addr = ip->saddr;
	u16 port = udp->source;

	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	ip->saddr = ip->daddr;
	ip->daddr = addr;
	udp->source = udp->dest;
	udp->dest = port;
}

SEC("tcx/ingress")
int take(struct __sk_buff *skb)
{
	void *start = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = start;
	struct iphdr *ip = start + sizeof(*eth);
	struct udphdr *udp = (void *)ip + sizeof(*ip);
	u32 zero = 0;
	struct wanted *w = bpf_map_lookup_elem(&wanteds, &zero);
	u64 *n = bpf_map_lookup_elem(&taken, &zero);

	if (!w || !n || w->mode == MODE_PASS || start + FRAME > end)
		return PASS;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 || ip->protocol != IPPROTO_UDP)
		return PASS;
	if ((w->reply ? udp->source : udp->dest) != w->port)
		return PASS;
	++*n;
	if (w->mode == MODE_SWALLOW)
		return DROP;
	turn(eth, ip, udp);
	return bpf_redirect(skb->ifindex, 0);
}

/* Takes frames before anything else sees them: the generator's own ceiling. */
SEC("xdp")
int swallow(struct xdp_md *ctx)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&taken, &zero);

	if (n)
		++*n;
	return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
