// Package oracle says what must become of a packet to a Service, by reading the rules of
// Services off the Kubernetes objects, slowly and obviously, and throws dice for clusters
// and packets to ask about. The tests of the package hold the tables and the fast path to
// it; TestLikeKubeProxy of bench/cluster holds a running Lace and, in another lab, a real
// kube-proxy to it, with real objects and packets, and lists where the two are meant to
// differ.
//
// It must share no code with what it judges: it knows the API's objects, addresses, and
// nothing of Lace. It keeps no index and remembers nothing but what its caller asks it to:
// every answer is worked out from all objects. Where the API leaves a choice, the choice is
// the one that docs/reference/services.md states.
//
// Cost: the number of all endpoints, for each packet.
package oracle
