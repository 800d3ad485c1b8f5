// Package packet reads frames in place, says on the trunk where a frame comes from and
// goes to, and writes the answers that Lace gives itself: TCP resets and ICMP port
// unreachable.
//
// It owns the wire formats of Ethernet, 802.1Q, IPv4, IPv6 with its extension headers,
// TCP, UDP, SCTP and ICMP as far as the packet path needs them, and the address type of
// every key. It never decides what becomes of a packet, never keeps a frame beyond the
// call, and never believes a length before it has compared it with the frame: whatever
// bytes come in, offsets that Parse hands out lie inside the frame and in the order L3 < L4
// <= End <= len(frame).
//
// Nothing allocates. Parse takes about 8 ns for TCP over IPv4; answers cost a copy of what
// they quote and its checksum.
//
// Flow: ReadPunt and Parse, the pipeline decides and rewrites over the offsets, or
// WriteReset and WriteUnreachable, then WriteInject.
package packet
