package publish

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/resolve"
)

// putAddresses notes which addresses a node has and tells the compiler when the addresses
// of the cluster's nodes are others now. Most changes of a Node change none.
func (w *work) putAddresses(name string, n *corev1.Node) {
	var next []netip.Addr
	if n != nil {
		next = resolve.NodeAddresses(n)
	}
	if slices.Equal(next, w.nodes[name]) {
		return
	}
	w.nodes[name] = next
	if n == nil {
		delete(w.nodes, name)
	}
	all := map[netip.Addr]bool{}
	for _, addresses := range w.nodes {
		for _, a := range addresses {
			all[a] = true
		}
	}
	w.compiler.SetNodes(all)
}
