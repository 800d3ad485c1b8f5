// Package agent is the slow path as a process: it joins source, publisher, attachments,
// health, metrics and the admin socket, and keeps them running.
//
// It owns the order in which they come up, the lock of the state directory (agent.lock),
// and the view of the other process: whether the fast path lives and which snapshot it
// uses. It must never touch a packet, and nothing that carries packets may depend on it:
// it can be killed at any moment, and what it published goes on.
//
//	source ─▶ tally ─▶ publish ─▶ <state-dir>/snapshot ─▶ fast path
//	netdev ─▶ attach ────▲                                   │
//	health, metrics, admin socket ◀── observer ◀── fastpath.json, counters, BPF maps
//
// Without a fast path everything works but the packets: the agent waits and says so.
//
// Cost: a look at the counter file every second; everything else happens on events.
package agent
