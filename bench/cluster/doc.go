// Package cluster is a real Kubernetes control plane in a lab: etcd, kube-apiserver and
// kube-controller-manager on the outside host, and on the lab's nodes agents that read
// from it.
//
// There is no kubelet: Nodes and Pods are objects that a test writes, and the lab's pods
// are what they describe. EndpointSlices come from the controllers of the control plane,
// ClusterIPs from the API server, and rights from RBAC, as in any cluster. A node may have a
// kube-proxy in place of Lace, or beside it; or a twin in another lab, which has the same
// addresses and another proxy, and reads from the same API server.
//
// The binaries are built by make cluster-binaries from a module of their own, so that the
// project never links Kubernetes. Tests have the build tag "cluster", since that takes
// long; without the binaries they are skipped, or fail when LACE_REQUIRE_CLUSTER=1, as in
// make e2e. Everything runs in namespaces of the lab, with keys made anew,
// and ends with the test.
//
// Cost: about 10 s until the API server is ready, and 400 MB of memory.
package cluster
