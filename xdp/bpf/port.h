/* SPDX-License-Identifier: GPL-2.0-only */
/* Ports: devices through which packets come and go, by id and by interface index. */
#ifndef LACE_PORT_H
#define LACE_PORT_H

#include "types.h"

#define HOST_PORT 1
#define MAX_PORTS 4096

/* fastpath/table.PortKind holds the same numbers. */
enum {
	KIND_NONE = 0,
	KIND_HOST = 1,
	KIND_POD = 2,
	KIND_UPLINK = 3,
};

/* By port id, for what goes out. xdp/ports.go holds the same record. */
struct port {
	u32 ifindex;
	u32 mtu; /* longest IP packet that it takes */
	u8 kind;
	u8 pad[3];
	u8 peer_mac[6]; /* the pod's own; zero for uplinks */
	u8 host_mac[6]; /* what the peer sends to; these twelve bytes are an Ethernet header's addresses */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, u32);
	__type(value, struct port);
} ports SEC(".maps");

/* By interface index, for what comes in. xdp/ports.go holds the same record. */
struct device {
	u32 network;
	u16 port;
	u8 kind;
	u8 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, u32);
	__type(value, struct device);
} devices SEC(".maps");

/* The same for low indexes, which nearly all are: the look-up of an array is a load, that of
 * a hash a call. */
#define LOW_DEVICES 16384

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOW_DEVICES);
	__type(key, u32);
	__type(value, struct device);
} low_devices SEC(".maps");

INLINE const struct device *device_of(struct __sk_buff *skb)
{
	u32 ifindex = skb->ifindex;
	const struct device *d = bpf_map_lookup_elem(&low_devices, &ifindex);

	if (!d)
		return bpf_map_lookup_elem(&devices, &ifindex);
	return d->kind == KIND_NONE ? 0 : d;
}

#endif
