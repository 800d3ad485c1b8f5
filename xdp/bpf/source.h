/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses that live on this node and the port behind which each lives: nobody else may
 * send from them. */
#ifndef LACE_SOURCE_H
#define LACE_SOURCE_H

#include "parse.h"
#include "port.h"
#include "types.h"

/* xdp/sources.go holds the same record. */
struct source {
	u32 network;
	u32 addr[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct source);
	__type(value, u32);
} sources SEC(".maps");

/* Port id behind which an address lives; 0: not on this node. */
INLINE u32 port_of(const u32 *addr, u32 network)
{
	struct source s = { .network = network };
	u32 *port;

	__builtin_memcpy(s.addr, addr, sizeof(s.addr));
	port = bpf_map_lookup_elem(&sources, &s);
	return port ? *port : 0;
}

/* Whether a packet that came in on a port may carry its source address: pods and the node
 * send from their own addresses only, an uplink brings none that lives here. */
INLINE int may_send(const struct packet *p, u32 network, u8 kind, u32 port)
{
	u32 home = port_of(p->src, network);

	return kind == KIND_UPLINK ? home == 0 : home == port;
}

#endif
