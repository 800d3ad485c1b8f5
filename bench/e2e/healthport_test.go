package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
)

// healthPort is the healthCheckNodePort of here, whose only endpoint is on n2.
const healthPort = 32002

// TestHealthPorts: a balancer outside the cluster asks the nodes, and finds that they do as
// they say.
func TestHealthPorts(t *testing.T) {
	c := newCluster(t, lab.Topology{Lane: "on", Delivery: "stack", RPFilter: 1, PodStyle: lab.PTP, Workers: 2})
	c.declare(t, "frontends", frontends)
	c.set(t, "here", c.endpoints(t, manifests.Ready, "web-3"))
	for _, b := range []struct {
		name string
		test func(*testing.T, *cluster)
	}{
		{"each node answers about its own endpoints, in each family", nodesAnswer},
		{"what is answered is what is done, through changes of the endpoints", answersHold},
		{"a fast path that is killed and started again", answersOutliveTheFastPath},
	} {
		t.Run(b.name, func(t *testing.T) { b.test(t, c) })
	}
}

// outside does something as the client outside the cluster.
func (c *cluster) outside(t *testing.T, do func()) {
	t.Helper()
	inNamespace(t, fmt.Sprintf("/proc/%d/ns/net", c.host(t, lab.OutsideName).PID()), do)
}

// asked is what a node's health check port says: code and weight, or an error. It must be
// called by a thread in the asking host's namespace.
func asked(node netip.Addr) string {
	conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(node, healthPort).String(), settleTime)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(settleTime))
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	r.Body.Close()
	return fmt.Sprintf("%d %s", r.StatusCode, r.Header.Get("X-Load-Balancing-Endpoint-Weight"))
}

// servedAt says whether a connection to the node port of here comes about.
func servedAt(node netip.Addr) bool {
	conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(node, 30082).String(), 20*time.Millisecond)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func nodesAnswer(t *testing.T, c *cluster) {
	for node, want := range map[string]string{"n1": "503 0", "n2": "200 1"} {
		for _, family := range []int{4, 6} {
			at := c.Node(node).Addr(family)
			eventually(t, fmt.Sprintf("%s answers %s over IPv%d", node, want, family), func() (holds bool) {
				c.outside(t, func() { holds = asked(at) == want })
				return holds
			})
		}
	}
}

// answersHold takes the endpoint away and brings it back, while answers and connections are
// compared. A connection and the answers around it that are at odds are no fault for the
// moment that a new generation takes to be in use; what lasts is.
func answersHold(t *testing.T, c *cluster) {
	at := c.Node("n2").Addr(4)
	var worst time.Duration
	states := map[manifests.State]string{manifests.Gone: "503 0", manifests.Ready: "200 1"}
	for i := range 40 {
		state := []manifests.State{manifests.Gone, manifests.Ready}[i%2]
		c.save(t, "here", c.endpoints(t, state, "web-3"))
		var odd time.Time // since when both are at odds
		eventually(t, "answer and connections agree on "+states[state], func() (settled bool) {
			c.outside(t, func() {
				begin, before := time.Now(), asked(at)
				carried := servedAt(at)
				after := asked(at)
				switch {
				case before != after:
				case carried == (after == "200 1"):
					if settled = after == states[state]; !odd.IsZero() {
						worst, odd = max(worst, time.Since(odd)), time.Time{}
					}
				case odd.IsZero():
					odd = begin
				}
			})
			return settled
		})
	}
	t.Logf("answers and connections were at odds for %s at most", worst)
}

// answersOutliveTheFastPath: a start takes a moment, which balancers need not hear of.
func answersOutliveTheFastPath(t *testing.T, c *cluster) {
	at := c.Node("n2").Addr(4)
	c.must(t, c.Node("n2").KillFastpath(t.Context()))
	c.must(t, c.Node("n2").StartFastpath(t.Context()))
	eventually(t, "n2 answers and serves", func() (holds bool) {
		c.outside(t, func() { holds = asked(at) == "200 1" && servedAt(at) })
		return holds
	})
}
