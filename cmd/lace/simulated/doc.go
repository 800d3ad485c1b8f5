// Package simulated is the stage of the demo that needs no privileges: the same control
// path (folder of YAML, publisher, snapshot file) and the same packet pipeline, worker
// and flow table, between hosts that exist as packets only.
//
// It owns what the kernel does on a real node: which frames are claimed and punted, and
// where injected ones go. That part follows the claim rule of package xdp. It must say
// SIMULATED wherever it is shown, and never claim a speed: time here is that of one
// process that plays every host.
//
// Only one node is simulated, n1; the pod web-3 is reached as on another node, through
// the uplink. Killing a process ends its goroutines; what outlives a real one (flow table,
// snapshot file) outlives them.
//
// Flow: Host → network → claim → port.Memory → worker → port.Memory → network → Host.
package simulated
