/* SPDX-License-Identifier: GPL-2.0-only */
/* What the hooks need to know of a packet. Nothing is pulled or changed: a packet that
 * passes is as it came. */
#ifndef LACE_PARSE_H
#define LACE_PARSE_H

#include "types.h"

#define MAPPED 0xffff0000 /* third word of a v4-mapped address, RFC 4291 2.5.5.2, as loaded natively */
#define MAX_EXTENSIONS 8  /* IPv6 extension headers walked; behind more the ports stay unknown */

#define IP4_FRAGMENT bpf_htons(0x3fff) /* more fragments, or an offset */
#define IP4_OFFSET bpf_htons(0x1fff)
#define IP6_OFFSET bpf_htons(0xfff8)
#define IP6_FRAGMENT bpf_htons(0xfff9) /* an offset, or more fragments; neither: a whole packet, RFC 6946 */

enum parsed {
	PARSED,
	NOT_IP,
	UNREADABLE, /* ends inside the IP header, or contradicts itself */
};

struct packet {
	u32 src[4], dst[4]; /* IPv4 as v4-mapped; each word as it lies in the packet */
	u32 ports;          /* source, destination as they lie in the packet; 0 where there are none */
	u8 protocol;        /* transport, behind IPv6 extension headers */
	u8 v6;
	u8 has_ports;
	u8 fragment; /* part of a datagram */
	u8 plain; /* whole, and the ports follow an IP header without options or extensions */
};

/* len bytes at a fixed offset: in place, or copied where the kernel holds them elsewhere. */
INLINE void *bytes(struct __sk_buff *skb, u32 offset, u32 len, void *copy)
{
	void *start = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (start + offset + len <= end)
		return start + offset;
	if (bpf_skb_load_bytes(skb, offset, copy, len))
		return 0;
	return copy;
}

INLINE int has_ports(u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

/* The ports lie at the beginning of TCP (RFC 9293), UDP (RFC 768) and SCTP (RFC 9260). A
 * packet too short for them is a packet without ports. */
INLINE void parse_ports(struct __sk_buff *skb, u32 offset, struct packet *p)
{
	if (!has_ports(p->protocol) || bpf_skb_load_bytes(skb, offset, &p->ports, 4))
		return;
	p->has_ports = 1;
}

/* The same at an offset that the compiler knows: no call for the usual packet. */
INLINE void parse_ports_at(struct __sk_buff *skb, const u32 offset, struct packet *p)
{
	u32 copy, *ports;

	if (!has_ports(p->protocol))
		return;
	ports = bytes(skb, offset, 4, &copy);
	if (!ports)
		return;
	p->ports = *ports;
	p->has_ports = 1;
	p->plain = 1;
}

INLINE enum parsed parse4(struct __sk_buff *skb, struct packet *p)
{
	struct iphdr copy, *ip = bytes(skb, ETH_HLEN, sizeof(copy), &copy);

	if (!ip || ip->version != 4 || ip->ihl < 5)
		return UNREADABLE;
	p->src[2] = MAPPED;
	p->src[3] = ip->saddr;
	p->dst[2] = MAPPED;
	p->dst[3] = ip->daddr;
	p->protocol = ip->protocol;
	p->fragment = (ip->frag_off & IP4_FRAGMENT) != 0;
	if (ip->frag_off & IP4_OFFSET)
		return PARSED;
	if (ip->ihl == 5 && !p->fragment)
		parse_ports_at(skb, ETH_HLEN + 20, p);
	else
		parse_ports(skb, ETH_HLEN + ip->ihl * 4, p);
	return PARSED;
}

/* One step over an extension header (RFC 8200, section 4; AH: RFC 4302). 0: there is no
 * further one, p->protocol says what lies at the offset. */
INLINE int step6(struct __sk_buff *skb, u32 *offset, struct packet *p, u8 *later)
{
	struct {
		u8 next, len;
		union {
			u16 fragment; /* offset and flags */
			u8 routing[2]; /* type, segments left */
		};
	} h;

	switch (p->protocol) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_FRAGMENT:
	case IPPROTO_AH:
		break;
	default:
		return 0;
	}
	if (bpf_skb_load_bytes(skb, *offset, &h, sizeof(h)))
		return 0;
	if (p->protocol == IPPROTO_FRAGMENT) {
		*later = (h.fragment & IP6_OFFSET) != 0;
		p->fragment = (h.fragment & IP6_FRAGMENT) != 0;
		*offset += 8;
	} else if (p->protocol == IPPROTO_AH) {
		*offset += (h.len + 2) * 4;
	} else if (p->protocol == IPPROTO_ROUTING && h.routing[1]) {
		return 0; /* segments left: what follows is not for this destination */
	} else {
		*offset += (h.len + 1) * 8;
	}
	p->protocol = h.next;
	return !*later;
}

INLINE void parse_extensions(struct __sk_buff *skb, struct packet *p)
{
	u32 offset = ETH_HLEN + 40;
	u8 later = 0;

	for (int i = 0; i < MAX_EXTENSIONS; i++)
		if (!step6(skb, &offset, p, &later))
			break;
	if (!later)
		parse_ports(skb, offset, p);
}

INLINE int is_mapped(const u32 *a)
{
	return a[0] == 0 && a[1] == 0 && a[2] == MAPPED;
}

INLINE enum parsed parse6(struct __sk_buff *skb, struct packet *p)
{
	struct ipv6hdr copy, *ip = bytes(skb, ETH_HLEN, sizeof(copy), &copy);

	if (!ip || ip->version != 6)
		return UNREADABLE;
	__builtin_memcpy(p->src, &ip->saddr, 16);
	__builtin_memcpy(p->dst, &ip->daddr, 16);
	/* On the wire these would be taken for the IPv4 address in every key. */
	if (is_mapped(p->src) || is_mapped(p->dst))
		return UNREADABLE;
	p->v6 = 1;
	p->protocol = ip->nexthdr;
	if (has_ports(p->protocol))
		parse_ports_at(skb, ETH_HLEN + 40, p);
	else
		parse_extensions(skb, p);
	return PARSED;
}

INLINE enum parsed parse(struct __sk_buff *skb, struct packet *p)
{
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return parse4(skb, p);
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return parse6(skb, p);
	return NOT_IP;
}

#endif
