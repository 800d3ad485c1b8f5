//go:build ignore

/* SPDX-License-Identifier: GPL-2.0-only */
/* The two ends of a load of frames, of UDP or TCP SYNs: what makes them and what takes them. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
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
#define SYN_LENGTH (sizeof(struct iphdr) + sizeof(struct tcphdr))
#define SYN_FRAME (sizeof(struct ethhdr) + SYN_LENGTH)

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
	u32 sum;           /* of the UDP or TCP header and its pseudo header */
	u32 syn;           /* 1: TCP SYNs in place of datagrams */
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

/* What follows the IPv4 header; sum is that of what varies. bench/load/frames.go adds the
 * constant fields. */
INLINE void write_udp(struct udphdr *udp, struct plan *p, u16 source, u32 sum, u16 length)
{
	udp->source = source;
	udp->dest = p->target_port;
	udp->len = bpf_htons(length);
	udp->check = fold(sum);
}

INLINE void write_syn(struct tcphdr *tcp, struct plan *p, u16 source, u32 sum)
{
	tcp->source = source;
	tcp->dest = p->target_port;
	tcp->seq = 0;
	tcp->ack_seq = 0;
	((u16 *)tcp)[6] = bpf_htons(0x5002); /* header of 20 bytes, SYN */
	tcp->window = bpf_htons(0xffff);
	tcp->check = fold(sum);
	tcp->urg_ptr = 0;
}

/* Flows come in scrambled order: an odd factor is a permutation of a power of two. A SYN is
 * shorter than the frame, and the rest is padding. */
SEC("xdp")
int make(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = start;
	struct iphdr *ip = start + sizeof(*eth);
	u32 zero = 0, flow, sum;
	struct plan *p = bpf_map_lookup_elem(&plans, &zero);
	u16 length = end - start - sizeof(*eth), source;

	if (!p || start + SYN_FRAME > end)
		return XDP_ABORTED;
	if (p->syn)
		length = SYN_LENGTH;
	flow = p->first_flow + (p->next++ * 0x9e3779b1 & p->mask);
	p->made++;
	__builtin_memcpy(eth, p->macs, sizeof(p->macs));
	eth->h_proto = bpf_htons(ETH_P_IP);
	*(u16 *)ip = bpf_htons(0x4500); /* version, header length, no class */
	ip->tot_len = bpf_htons(length);
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000); /* do not fragment */
	ip->ttl = 64;
	ip->protocol = p->syn ? IPPROTO_TCP : IPPROTO_UDP;
	ip->saddr = bpf_htonl(p->first_address + (flow >> 15));
	ip->daddr = p->target;
	ip->check = fold(p->ip_sum + halves(ip->saddr));
	source = bpf_htons(p->first_port + (flow & 0x7fff));
	sum = p->sum + halves(ip->saddr) + source;
	if (p->syn)
		write_syn((void *)(ip + 1), p, source, sum);
	else
		write_udp((void *)(ip + 1), p, source, sum, length - sizeof(*ip));
	return XDP_TX;
}

enum {
	MODE_PASS = 0,   /* nothing is taken */
	MODE_SWALLOW = 1,
	MODE_ANSWER = 2, /* sent back from where it was addressed to */
};

/* What to take: UDP, or TCP, to or from a port. bench/load/sink.go holds the same record. */
struct wanted {
	u32 mode;
	u16 port; /* as it lies in a packet */
	u8 reply; /* 1: the source port is compared */
	u8 tcp;   /* 1: TCP in place of UDP, which can be swallowed only */
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
	if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5)
		return PASS;
	if (ip->protocol != (w->tcp ? IPPROTO_TCP : IPPROTO_UDP))
		return PASS;
	/* Both protocols have their ports in the same place. */
	if ((w->reply ? udp->source : udp->dest) != w->port)
		return PASS;
	++*n;
	if (w->mode == MODE_SWALLOW || w->tcp)
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
