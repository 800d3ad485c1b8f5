/* SPDX-License-Identifier: GPL-2.0-only */
/* What Go tells the programs about the node: one record, written rarely. */
#ifndef LACE_SETTINGS_H
#define LACE_SETTINGS_H

#include "types.h"

/* xdp/settings.go holds the same record. */
struct settings {
	u32 layout;        /* version of the layout of all pinned maps; the programs do not read it */
	u32 trunk;         /* interface index of lace0; 0: no trunk yet */
	u32 queues;        /* of the trunk, at least 1 */
	u32 mtu;           /* of the trunk, without the Ethernet header */
	u32 flow_mask;     /* number of flow table buckets - 1 */
	u32 flow_keys[10]; /* secret keys of the flow table's hash */
	u32 host_network;  /* network of the node itself */
	u32 narrow;        /* 1: some claims name a protocol and a port */
	u32 lane;          /* 1: flows may be repeated in the kernel; 0: Go gets every packet */
	u32 weak_order;    /* 1: this processor may let a load overtake another */
	u8 mac[6];         /* of lace0 */
	u8 pad[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct settings);
} settings SEC(".maps");

INLINE const struct settings *settings_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

#endif
