package e2e

import (
	"testing"

	"lace-cni.io/lace/bench/lab"
)

// delivered are the behaviours that depend on how packets go on once they are translated.
var delivered = []struct {
	name string
	test func(*testing.T, *cluster)
}{
	{"every origin reaches every backend", everyOriginReachesEveryBackend},
	{"clients keep their address where the path allows it", clientAddressIsKept},
	{"a pod reaches itself through its Service", hairpin},
	{"one client port serves two VIPs of one backend", clash},
	{"a backend in a node's own stack answers every origin", nodeBackends},
	{"a Service without endpoints refuses at once", noEndpointsRefuse},
	{"connections of 8 MB come over whole", largeInLane},
	{"a source that is not the sender's own is dropped", spoofedSourceIsDropped},
	{"a connection keeps its backend, a datagram flow finds another one", backendGoes},
	{"a late packet of a closed connection starts nothing", latePacket},
	{"traffic that is not for a Service is left alone", directTraffic},
}

// Routed by the nodes' own stacks, packets arrive as they do without them.
func TestBehaviourInStack(t *testing.T) {
	for _, lane := range lanes {
		for _, s := range settings {
			t.Run("lane "+lane+", "+s.name, func(t *testing.T) {
				topology := s.topology
				topology.Lane, topology.Delivery = lane, "stack"
				c := newCluster(t, topology)
				for _, b := range delivered {
					t.Run(b.name, func(t *testing.T) { b.test(t, c) })
				}
			})
		}
	}
}

// In the stack, too, the lane carries what is established, all of it.
func TestLaneInStack(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: "on", Delivery: "stack"})
	t.Run("established connections of every origin run in it", func(t *testing.T) { runsInLane(t, c) })
	t.Run("an endpoint that comes and goes does not concern connections to others", func(t *testing.T) { othersStay(t, c) })
}
