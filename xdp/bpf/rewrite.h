/* SPDX-License-Identifier: GPL-2.0-only */
/* Carrying a decision out on a packet: addresses, ports, checksums, hop limit and the
 * addresses of the next hop. Whatever the kernel knows of the packet's checksum (nothing,
 * the sum of all bytes, or that a device has yet to finish it) stays true. */
#ifndef LACE_REWRITE_H
#define LACE_REWRITE_H

#include "decision.h"
#include "parse.h"
#include "types.h"

#define TCP_CHECK 16 /* offset in the header, RFC 9293 section 3.1 */
#define UDP_CHECK 6  /* RFC 768 */

/* One less in the word that holds the time to live (IPv4), or the hop limit (IPv6), as a
 * difference of one's complement sums of little-endian words. */
#define TTL4_DOWN 0xfffe
#define TTL6_DOWN 0xfeff

/* Headers as they lie in a packet, aligned to where words may be read. */
struct head4 {
	u16 pad;
	u8 mac[12];
	u16 type;
	struct iphdr ip;
	u32 ports;
};

struct head6 {
	u16 pad;
	u8 mac[12];
	u16 type;
	struct ipv6hdr ip;
	u32 ports;
};

#define HEAD4_LEN (ETH_HLEN + 20 + 4)
#define HEAD6_LEN (ETH_HLEN + 40 + 4)

/* What changes besides addresses and ports. */
struct hop {
	const u8 *macs; /* the first macs_len bytes of the Ethernet header */
	u32 macs_len;   /* 0, 6 or 12 */
	int down;       /* 1: one hop less to live */
};

INLINE u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

INLINE void set_macs(u8 *mac, const struct hop *hop)
{
	if (hop->macs_len == 12)
		__builtin_memcpy(mac, hop->macs, 12);
	else if (hop->macs_len == 6)
		__builtin_memcpy(mac, hop->macs, 6);
}

/* The transport checksum covers the addresses by the pseudo header, which a device that
 * finishes it counts on, and the ports, which it sums itself. A UDP checksum of zero says
 * that there is none, and stays. Fails before it has changed anything, when the packet
 * ends inside the header. */
INLINE int fix_transport(struct __sk_buff *skb, const struct packet *p, const struct decision *d, const u32 l4)
{
	u32 at = l4 + (p->protocol == IPPROTO_TCP ? TCP_CHECK : UDP_CHECK);
	u64 flags = p->protocol == IPPROTO_TCP ? 0 : BPF_F_MARK_MANGLED_0;

	if (bpf_l4_csum_replace(skb, at, 0, d->l3, flags | BPF_F_PSEUDO_HDR))
		return -1;
	if (p->ports == d->new_ports)
		return 0;
	return bpf_l4_csum_replace(skb, at, p->ports, d->new_ports, flags | sizeof(u32));
}

/* In a large datagram of the node's own that is yet to be cut the field holds the sum of the
 * pseudo header alone. Where the device that it was made for has no checksum offload, as
 * lace0 has none, the kernel does not say so, and its own arithmetic would take the field
 * for a whole checksum. */
INLINE int fix_pseudo(struct __sk_buff *skb, const struct decision *d, const u32 l4)
{
	u16 sum;

	if (bpf_skb_load_bytes(skb, l4 + UDP_CHECK, &sum, sizeof(sum)))
		return -1;
	if (sum)
		sum = fold(sum + d->l3);
	return bpf_skb_store_bytes(skb, l4 + UDP_CHECK, &sum, sizeof(sum), 0);
}

/* The sum of all bytes does not change: the header checksum makes up for what does. */
INLINE int rewrite4(struct __sk_buff *skb, const struct decision *d, const struct hop *hop)
{
	struct head4 h;

	if (bpf_skb_load_bytes(skb, 0, h.mac, HEAD4_LEN))
		return -1;
	set_macs(h.mac, hop);
	h.ip.saddr = d->new_src;
	h.ip.daddr = d->new_dst;
	h.ip.ttl -= hop->down;
	h.ip.check = ~fold((u16)~h.ip.check + d->l3 + (hop->down ? TTL4_DOWN : 0));
	h.ports = d->new_ports;
	return bpf_skb_store_bytes(skb, 0, h.mac, HEAD4_LEN, 0);
}

/* IPv6 has no header checksum, so that the sum of all bytes changes. The kernel took the
 * addresses for made up by fix_transport, or not, depending on its version and on a flag
 * that old ones refuse. Without the flag all subtract them; here they are added again. */
INLINE int rewrite6(struct __sk_buff *skb, const struct decision *d, const struct hop *hop)
{
	struct head6 h;

	if (bpf_skb_load_bytes(skb, 0, h.mac, HEAD6_LEN))
		return -1;
	set_macs(h.mac, hop);
	__builtin_memcpy(&h.ip.saddr, d->high_new_src, 12);
	h.ip.saddr.in6_u.u6_addr32[3] = d->new_src;
	__builtin_memcpy(&h.ip.daddr, d->high_new_dst, 12);
	h.ip.daddr.in6_u.u6_addr32[3] = d->new_dst;
	h.ip.hop_limit -= hop->down;
	h.ports = d->new_ports;
	bpf_csum_update(skb, d->l3 + (hop->down ? TTL6_DOWN : 0)); /* fails where there is no such sum */
	return bpf_skb_store_bytes(skb, 0, h.mac, HEAD6_LEN, 0);
}

#endif
