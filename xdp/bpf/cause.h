/* SPDX-License-Identifier: GPL-2.0-only */
/* Why the lane leaves a packet to Go. xdp/cause.go holds the same numbers and the words. */
#ifndef LACE_CAUSE_H
#define LACE_CAUSE_H

enum cause {
	SETTLED, /* it does not */
	CAUSE_MISS,
	CAUSE_GO_MODE,
	CAUSE_GENERATION,
	CAUSE_SYN,
	CAUSE_TORN,
	CAUSE_TTL,
	CAUSE_MTU,
	CAUSE_PORT,
	CAUSE_HEADER,
	CAUSE_ICMP,
	CAUSES,
};

#endif
