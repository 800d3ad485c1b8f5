// Package lab builds a small cluster out of network namespaces: two nodes, pods on them,
// an underlay and a client outside of the cluster, with real links, real routes and real
// sockets. The demo, the behaviour tests and the benches run on it.
//
// It owns every process it starts and nothing of the host: namespaces have no names and
// are held by processes alone, each the first of a process namespace of its own and bound
// to the life of the process that called Start. Closing the lab, Ctrl-C or kill -9 of that
// process therefore ends every process, link, route, mount, BPF program and map. Only a
// folder of YAML and logs stays behind a kill -9; the next Start removes it.
//
// It must never touch the network namespace it is called from, and never enter another
// one with a thread of its own: what has to happen inside a namespace is done by the
// process that lives there, or through a netlink socket that was opened there.
//
// # Topology
//
//	outside 172.30.0.100          n1 172.30.0.11 (zone a)          n2 172.30.0.12 (zone b)
//	        └──────────────── wire (a bridge, in a namespace of its own) ────────┘
//	n1: web-1 web-2 shopper (10.244.1.0/24)      n2: web-3 visitor (10.244.2.0/24)
//
// and the same in IPv6. Nodes route each other's pod prefixes over the wire, as a plain
// routed pod network does; the outside client has routes to the service ranges and the pod
// prefixes, service ranges by way of n1.
//
// # Flow
//
// A program that uses the package calls Main first: the processes of the lab are the same
// executable, started again with a role in the environment.
//
// Cost: about 15 MiB and one process for each pod, node and the wire; a start takes well
// under a second.
package lab
