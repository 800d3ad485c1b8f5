package e2e

import (
	"testing"

	"lace-cni.io/lace/bench/lab"
)

// settings under which every behaviour must be the same.
var settings = []struct {
	name     string
	topology lab.Topology
}{
	{"routed pods, no reverse-path filter, one worker", lab.Topology{RPFilter: 0, PodStyle: lab.PTP, Workers: 1}},
	{"routed pods, strict reverse-path filter, two workers", lab.Topology{RPFilter: 1, PodStyle: lab.PTP, Workers: 2}},
	{"bridged pods, loose reverse-path filter, two workers", lab.Topology{RPFilter: 2, PodStyle: lab.Bridge, Workers: 2}},
	{"bridged pods, strict reverse-path filter, one worker", lab.Topology{RPFilter: 1, PodStyle: lab.Bridge, Workers: 1}},
}

// behaviours are tests that leave the cluster as they found it.
var behaviours = []struct {
	name string
	test func(*testing.T, *cluster)
}{
	{"every origin reaches every backend", everyOriginReachesEveryBackend},
	{"clients keep their address where the path allows it", clientAddressIsKept},
	{"a pod reaches itself through its Service", hairpin},
	{"one client port serves two VIPs of one backend", clash},
	{"a backend in a node's own stack answers every origin", nodeBackends},
	{"a Service without endpoints refuses at once", noEndpointsRefuse},
	{"an unknown port of a VIP is refused and never reaches the node", unknownPortIsRefused},
	{"policy Local without a local endpoint drops", localWithoutEndpointDrops},
	{"an unused address of a service range is dropped", unusedAddressIsDropped},
	{"a source that is not the sender's own is dropped", spoofedSourceIsDropped},
	{"a connection keeps its backend, a datagram flow finds another one", backendGoes},
	{"a late packet of a closed connection starts nothing", latePacket},
	{"traffic that is not for a Service is left alone", directTraffic},
	{"datagrams in fragments come over whole", longDatagramsComeOver},
	{"fragments that are not for a Service come over too", longDirectDatagrams},
	{"an edit takes effect within a second", editTakesEffect},
	{"a broken file changes nothing and is reported", brokenFile},
	{"a deleted Service ends", deletedService},
}

// lanes says who moves the packets of established connections, with the same outcome.
var lanes = []string{"on", "off"}

// Every behaviour holds in every setting, with the lane and without it.
func TestBehaviour(t *testing.T) {
	for _, lane := range lanes {
		for _, s := range settings {
			t.Run("lane "+lane+", "+s.name, func(t *testing.T) {
				topology := s.topology
				topology.Lane = lane
				c := newCluster(t, topology)
				for _, b := range behaviours {
					t.Run(b.name, func(t *testing.T) { b.test(t, c) })
				}
			})
		}
	}
}
