// Package servicehealth answers balancers that ask whether this node has endpoints of a
// Service: one port for each LoadBalancer Service under externalTrafficPolicy Local, its
// healthCheckNodePort, in HTTP, as kube-proxy does.
//
// It owns those ports, which come and go with their Services, and what they say. It must
// never say what the forwarding tables do not do: an answer is that of the generation of
// tables which the fast path uses at the moment of the question, found by asking which that
// is. What was published and is not in use yet is known here before its snapshot is
// written, so that no generation can come into use without its answers. It must never be
// held up by a client: connections are bounded for each port and for all together, in
// number and in time, and the oldest one of the fullest port makes room.
//
// Each family of a Service has sockets of its own and speaks about itself; a family that a
// Service does not have is not listened on. A port that cannot be had is a Problem, and is
// tried again.
//
// Cost: two sockets and two goroutines for each such Service and address; a walk over all
// Services with each publication, in which counts of Services that did not change are kept;
// a question costs one look at the fast path's counters, at most one in a millisecond.
package servicehealth
