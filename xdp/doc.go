// Package xdp owns the kernel side of the fast path: the claim programs on pods, uplinks
// and lace0, the XDP program on the trunk, the maps behind them, and the trunk itself.
//
// It loads the programs of xdp/bpf, pins maps and links under <bpffs>/lace so that they
// outlive the process, and keeps ports, sources and claims equal to the tables it is given.
//
//	Open ─▶ conntrack.Map(FlowMemory) ─▶ SetFlowKeys ─▶ OpenTrunk ─▶ AttachTrunk
//	     ─▶ SyncGenerations, AddSources, SyncPorts, SyncSources, SyncClaims (again with every snapshot)
//	     ─▶ SetLane ─▶ SetSocket
//
// It decides nothing about a packet, knows nothing of Services and touches no device
// other than the trunk's two and those it is told to attach to.
//
// Cost: the first Open loads and verifies every program (some 500 ms, see TestVerifier); the
// next of the same build takes them over from their pins (some 13 ms). A sync costs one system
// call per entry that changed and nothing for those that did not.
//
// Objects and Trunk are for one goroutine, but for Counters, which any may call.
package xdp
