/* SPDX-License-Identifier: GPL-2.0-only */
/* ICMP errors: each quotes the beginning of the packet that it is about, and by that it is
 * known to which flow it belongs. Who sent it does not matter, any router may. */
#ifndef LACE_ICMP_H
#define LACE_ICMP_H

#include "flow.h"
#include "parse.h"
#include "types.h"

#define ICMP_LEN 8 /* what comes before the quoted packet */

INLINE int is_icmp(const struct packet *p)
{
	return p->protocol == (p->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

/* The types that quote a packet: RFC 792, RFC 4443 section 2.1. */
INLINE int is_error(const struct packet *p, u8 type)
{
	if (p->v6)
		return type >= 1 && type <= 4;
	return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/* What follows an IPv4 header at an offset: its protocol, and by *offset where it begins.
 * 0: nothing, or not its beginning. */
INLINE u8 behind4(struct __sk_buff *skb, u32 *offset, struct iphdr *ip)
{
	if (bpf_skb_load_bytes(skb, *offset, ip, sizeof(*ip)) || ip->version != 4 || ip->ihl < 5 ||
	    ip->frag_off & IP4_OFFSET)
		return 0;
	*offset += ip->ihl * 4;
	return ip->protocol;
}

/* The same for IPv6, behind its extension headers. */
INLINE u8 behind6(struct __sk_buff *skb, u32 *offset, struct ipv6hdr *ip)
{
	struct packet p = {};
	u8 later = 0;

	if (bpf_skb_load_bytes(skb, *offset, ip, sizeof(*ip)) || ip->version != 6)
		return 0;
	*offset += sizeof(*ip);
	p.protocol = ip->nexthdr;
	for (int i = 0; i < MAX_EXTENSIONS; i++)
		if (!step6(skb, offset, &p, &later))
			break;
	return later ? 0 : p.protocol;
}

INLINE int quoted4(struct __sk_buff *skb, u32 *offset, struct packet *q)
{
	struct iphdr ip;

	q->protocol = behind4(skb, offset, &ip);
	q->src[2] = MAPPED;
	q->src[3] = ip.daddr;
	q->dst[2] = MAPPED;
	q->dst[3] = ip.saddr;
	return has_ports(q->protocol);
}

INLINE int quoted6(struct __sk_buff *skb, u32 *offset, struct packet *q)
{
	struct ipv6hdr ip;

	q->protocol = behind6(skb, offset, &ip);
	__builtin_memcpy(q->src, &ip.daddr, 16);
	__builtin_memcpy(q->dst, &ip.saddr, 16);
	q->v6 = 1;
	return has_ports(q->protocol);
}

/* Where the message begins; 0: not here, or not all of it. */
INLINE u32 message_at(struct __sk_buff *skb, const struct packet *p)
{
	u32 offset = ETH_HLEN;
	struct ipv6hdr ip6;
	struct iphdr ip4;

	if (p->v6)
		return behind6(skb, &offset, &ip6) == IPPROTO_ICMPV6 ? offset : 0;
	if (behind4(skb, &offset, &ip4) != IPPROTO_ICMP || ip4.frag_off & IP4_FRAGMENT)
		return 0;
	return offset;
}

INLINE int goes_to(const struct packet *p, const u32 *a)
{
	return !((p->dst[0] ^ a[0]) | (p->dst[1] ^ a[1]) | (p->dst[2] ^ a[2]) | (p->dst[3] ^ a[3]));
}

/* Reads the quoted packet with its ends exchanged: so it has the tuple of the direction in
 * which the error travels. An error goes to the sender of what it quotes, or is none. */
static __noinline int read_quoted(struct __sk_buff *skb, const struct packet *p, struct packet *q)
{
	u32 offset = message_at(skb, p), ports;
	u8 type;

	if (!offset || bpf_skb_load_bytes(skb, offset, &type, 1) || !is_error(p, type))
		return 0;
	offset += ICMP_LEN;
	if (!(p->v6 ? quoted6(skb, &offset, q) : quoted4(skb, &offset, q)) || !goes_to(p, q->dst))
		return 0;
	if (bpf_skb_load_bytes(skb, offset, &ports, 4))
		return 0;
	q->ports = ports >> 16 | ports << 16;
	q->has_ports = 1;
	return 1;
}

/* The flow that an ICMP error is about, or 0. */
INLINE struct slot *flow_quoted(struct __sk_buff *skb, const struct settings *s, const struct packet *p,
				struct packet *q, u32 network)
{
	if (!is_icmp(p) || !read_quoted(skb, p, q))
		return 0;
	return flow_find(s, q, network);
}

#endif
