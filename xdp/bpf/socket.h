/* SPDX-License-Identifier: GPL-2.0-only */
/* On lace1: what was punted goes to the AF_XDP socket of its queue. */
#ifndef LACE_SOCKET_H
#define LACE_SOCKET_H

#include "counter.h"
#include "trunk.h"

#define MAX_QUEUES 64

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, MAX_QUEUES);
	__type(key, u32);
	__type(value, u32);
} sockets SEC(".maps");

INLINE int to_socket(struct xdp_md *ctx)
{
	u8 *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int verdict;

	if (frame + ETH_HLEN > end || !is_trunk(frame, TRUNK_PUNT)) {
		count(REASON_FOREIGN_FRAME, end - frame);
		return XDP_DROP;
	}
	verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);
	if (verdict == XDP_DROP)
		count(REASON_NO_WORKER, end - frame);
	return verdict;
}

#endif
