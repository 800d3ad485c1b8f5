//go:build ignore
/* SPDX-License-Identifier: GPL-2.0-only */
/* What the node sends to its own address never leaves its loopback device. So where a
 * Service has a port of such an address, sockets of the node that call it are sent to the
 * address's alias, which is routed to the trunk, and see the address that they called. */

#include "alias.h"

SEC("cgroup/connect4")
int own_connect4(struct bpf_sock_addr *ctx)
{
	return send_to_alias4(ctx);
}

SEC("cgroup/connect6")
int own_connect6(struct bpf_sock_addr *ctx)
{
	return send_to_alias6(ctx);
}

SEC("cgroup/sendmsg4")
int own_sendmsg4(struct bpf_sock_addr *ctx)
{
	return send_to_alias4(ctx);
}

SEC("cgroup/sendmsg6")
int own_sendmsg6(struct bpf_sock_addr *ctx)
{
	return send_to_alias6(ctx);
}

SEC("cgroup/recvmsg4")
int own_recvmsg4(struct bpf_sock_addr *ctx)
{
	return show_own4(ctx);
}

SEC("cgroup/recvmsg6")
int own_recvmsg6(struct bpf_sock_addr *ctx)
{
	return show_own6(ctx);
}

SEC("cgroup/getpeername4")
int own_getpeername4(struct bpf_sock_addr *ctx)
{
	return show_own4(ctx);
}

SEC("cgroup/getpeername6")
int own_getpeername6(struct bpf_sock_addr *ctx)
{
	return show_own6(ctx);
}

char _license[] SEC("license") = "GPL";
