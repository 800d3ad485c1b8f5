// Package dataplane is the fast path as a process: it joins kernel programs, flow table,
// sockets, workers, counters and snapshots, and keeps them together.
//
// It owns the order in which things come up, change and go down, the locks of state
// directory, network namespace and pins, fastpath.json, and the decision what to do when something underneath is
// missing, damaged or replaced. It must never touch a packet, know of Kubernetes, hold a
// credential, or undo on its way out what established flows live on: pinned programs and
// maps stay, so that a restarted process goes on where this one stopped.
//
// Flow:
//
//	lock ▶ kernel programs ▶ flow table ▶ trunk ▶ sockets ▶ last snapshot ▶ workers
//	                                              ▲ new snapshot: watch ▶ check ▶ swap ▶ sync
//
// To sync is, in this order: revoke what the lane must not repeat, switch the lane, add new
// sources, then ports, sources that go, and claims.
//
// A new snapshot that does not pass its checks is refused with a log line and counted;
// the last good one stays in use. Once a second the kernel side is compared with the
// tables, so that a replaced device is attached to again.
//
// A trunk that is taken away is raised again under the programs, flows and tables that stay.
//
// Cost: nothing per packet. A new snapshot costs its checks, one pointer swap and one
// system call for each map entry that differs.
package dataplane
