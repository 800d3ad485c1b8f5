// Package kubeproxy finds the signs by which a kube-proxy is known on a node: that it runs,
// and the rules that it has laid.
//
// It looks at the network namespace of the calling thread, changes nothing, and loads no
// module. It must never decide what follows from a sign: lace-agent refuses to start, lace
// check gives advice. What cannot be seen for want of a right is no sign.
//
// Cost: two dumps of names over netlink, which grow with the rules of the node (some
// milliseconds for 10,000 chains), and a connection to the loopback device; Look adds a look
// at every process, a tenth of a millisecond each.
package kubeproxy
