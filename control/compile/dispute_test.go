package compile_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// TestDisputesEqualFull runs random edits of Services whose node ports and health check ports
// are each other's, and the agent's. After every snapshot tables, Problems and what is lost are
// those of a Compiler that begins with the same ids and is told all of it in another order.
func TestDisputesEqualFull(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c, services, agent := compile.New(nil), map[model.Name]*model.Service{}, []uint16(nil)
		c.SetAttachments(twoPods())
		for generation := uint64(1); generation <= 15; generation++ {
			for range 1 + rng.IntN(3) {
				switch s := disputing(t, rng); rng.IntN(6) {
				case 0:
					c.DeleteService(s.Name)
					delete(services, s.Name)
				case 1:
					agent = []uint16{10256, 32001}[:rng.IntN(3)]
					c.SetAgentPorts(agent)
				default:
					c.SetService(s)
					services[s.Name] = s
				}
			}
			got := snapshot(t, c, generation)
			full := compile.New(got)
			full.Recall(c)
			for _, s := range services { // in any order
				full.SetService(s)
			}
			full.SetAttachments(twoPods())
			full.SetAgentPorts(agent)
			diff(t, "tables", tables(snapshot(t, full, generation)), tables(got))
			diff(t, "problems", full.Problems(), c.Problems())
			diff(t, "lost", full.Lost(), c.Lost())
			if t.Failed() {
				t.Fatalf("seed %d, generation %d", seed, generation)
			}
		}
	}
}

// disputing is a Service with a node port, an external address of the node, and perhaps a health
// check port, of few numbers.
func disputing(t *testing.T, rng *rand.Rand) *model.Service {
	name := string(rune('a' + rng.IntN(5)))
	s := service(t, name, fmt.Sprint("10.96.0.", name[0]-'a'+1), "10.244.1.5:8080@n1")
	s = reachable(s, model.NodePort, "172.30.0.11", 32000+uint16(rng.IntN(3)), model.PolicyCluster)
	s = reachable(s, model.ExternalIP, "172.30.0.11", []uint16{32000, 10256}[rng.IntN(2)], model.PolicyCluster)
	s.HealthPort = []uint16{0, 32000, 32001, 32002}[rng.IntN(4)]
	s.UID = fmt.Sprint(rng.IntN(2))
	if n := rng.Int64N(4); n > 0 {
		s.Created = time.Unix(n, 0)
	}
	return s
}
