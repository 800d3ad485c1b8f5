/* SPDX-License-Identifier: GPL-2.0-only */
/* The node's own sockets that call one of its own addresses, and the way back. IPv4
 * addresses are v4-mapped. */
#ifndef LACE_ALIAS_H
#define LACE_ALIAS_H

#include "types.h"

#define GO_ON 1 /* the verdict of every program here: the call goes on */
#define MAPPED bpf_htonl(0xffff)

struct address {
	u32 word[4];
};

/* A port of a Service. xdp/alias.go holds the same record. */
struct place {
	struct address address;
	u16 port; /* network order */
	u8 protocol;
	u8 pad;
};

/* The alias of each on an address of the node. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct place);
	__type(value, struct address);
} own_places SEC(".maps");

/* The address for which an alias stands, at the ports that it has: a server of the node sees
 * clients at it, too, at others. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct place);
	__type(value, struct address);
} own_names SEC(".maps");

/* The node's network namespace: the programs see the sockets of all. */
const volatile u64 node_cookie;

INLINE int of_node(struct bpf_sock_addr *ctx) { return bpf_get_netns_cookie(ctx) == node_cookie; }

/* A socket that is bound to a device, or to a loopback address, cannot take the way to the
 * trunk: its call stays what it was. */
INLINE int bound4(const struct bpf_sock *sk)
{
	return sk->bound_dev_if || (sk->src_ip4 & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
}

INLINE int bound6(const struct bpf_sock *sk)
{
	return sk->bound_dev_if ||
	       (!sk->src_ip6[0] && !sk->src_ip6[1] && !sk->src_ip6[2] && sk->src_ip6[3] == bpf_htonl(1));
}

INLINE int is_mapped(const struct address *a) { return !a->word[0] && !a->word[1] && a->word[2] == MAPPED; }

INLINE struct address mapped(u32 ip4)
{
	struct address a = { .word = { 0, 0, MAPPED, ip4 } };

	return a;
}

INLINE const struct address *find(void *map, struct bpf_sock_addr *ctx, const struct address *at)
{
	struct place p = { .address = *at, .port = ctx->user_port, .protocol = ctx->protocol };

	return bpf_map_lookup_elem(map, &p);
}

INLINE struct address ip6_of(const struct bpf_sock_addr *ctx)
{
	struct address a = { .word = { ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3] } };

	return a;
}

INLINE void set_ip6(struct bpf_sock_addr *ctx, const struct address *to)
{
	ctx->user_ip6[0] = to->word[0];
	ctx->user_ip6[1] = to->word[1];
	ctx->user_ip6[2] = to->word[2];
	ctx->user_ip6[3] = to->word[3];
}

INLINE int send_to_alias4(struct bpf_sock_addr *ctx)
{
	struct address own = mapped(ctx->user_ip4);
	const struct bpf_sock *sk = ctx->sk;
	const struct address *alias;

	if (!of_node(ctx))
		return GO_ON;
	alias = find(&own_places, ctx, &own);
	if (alias && sk && !bound4(sk))
		ctx->user_ip4 = alias->word[3];
	return GO_ON;
}

INLINE int send_to_alias6(struct bpf_sock_addr *ctx)
{
	struct address own = ip6_of(ctx);
	const struct bpf_sock *sk = ctx->sk;
	const struct address *alias;

	if (!of_node(ctx))
		return GO_ON;
	alias = find(&own_places, ctx, &own);
	if (!alias || !sk)
		return GO_ON;
	if (is_mapped(&own) ? bound4(sk) : bound6(sk))
		return GO_ON;
	set_ip6(ctx, alias);
	return GO_ON;
}

INLINE int show_own4(struct bpf_sock_addr *ctx)
{
	struct address alias = mapped(ctx->user_ip4);
	const struct address *own;

	if (!of_node(ctx))
		return GO_ON;
	own = find(&own_names, ctx, &alias);
	if (own)
		ctx->user_ip4 = own->word[3];
	return GO_ON;
}

INLINE int show_own6(struct bpf_sock_addr *ctx)
{
	struct address alias = ip6_of(ctx);
	const struct address *own;

	if (!of_node(ctx))
		return GO_ON;
	own = find(&own_names, ctx, &alias);
	if (own)
		set_ip6(ctx, own);
	return GO_ON;
}

#endif
