// Package attach finds the ports of a node and follows them.
//
// A port is a device through which packets of Services come and go: the node itself
// behind lace0, the node's side of a pod's veth, or an uplink. Nobody declares them:
// they follow from what the node's network already says, so that Lace works beside any
// CNI plugin that gives pods veths.
//
//   - Host: the trunk's device lace0, with every address of the node.
//   - Uplink: an Ethernet device that carries the default route, a route by a gateway
//     or a prefix of the node's own address. A veth may be one.
//   - Pod: a veth whose other end is in another namespace and to which addresses lead:
//     by a host route (/32, /128; point-to-point style), or because a bridge has it as
//     a port and the node's neighbours, the bridge's stations or the device at the other
//     end say which address is behind it (bridge style).
//
// Where two pods claim one address, the one to which a host route leads has it; behind
// bridges, the one whose own device holds it; among equals, the newest device. The
// claim of the other is a Problem. A prefix that leaves through no port is left to the node,
// whose kernel then routes it.
//
// It owns the routes of the service ranges to lace0 (they bear netdev.ProtocolLace)
// and puts them back when somebody takes them away. It must never touch any other
// route, or any device.
//
// Cost: one reading of the network and one derivation per change: about 0.1 ms per pod
// (BenchmarkRead, BenchmarkDerive). While changes keep coming, at most one reading in
// 50 ms and a tenth of one processor, up to 1,000 pods.
//
// Flow: netdev.Watch → netdev.Read → Derive → service ranges → sink (publish).
package attach
