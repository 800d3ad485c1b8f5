//go:build ignore
/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs. Each is a hook of one kind of device and direction. */

#include "hook.h"
#include "host.h"
#include "inject.h"
#include "socket.h"

SEC("tcx/ingress")
int from_pod(struct __sk_buff *skb)
{
	return ingress(skb, KIND_POD);
}

SEC("tcx/ingress")
int from_uplink(struct __sk_buff *skb)
{
	return ingress(skb, KIND_UPLINK);
}

SEC("tcx/egress")
int to_port(struct __sk_buff *skb)
{
	return egress(skb);
}

SEC("tcx/egress")
int from_host(struct __sk_buff *skb)
{
	return from_node(skb);
}

SEC("tcx/ingress")
int from_go(struct __sk_buff *skb)
{
	return injected(skb);
}

SEC("xdp")
int to_go(struct xdp_md *ctx)
{
	return to_socket(ctx);
}

char _license[] SEC("license") = "GPL";
