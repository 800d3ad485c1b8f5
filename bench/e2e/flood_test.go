package e2e

import (
	"net/netip"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/traffic"
	"lace-cni.io/lace/fastpath/counter"
)

// floods are what a node has to bear. Rates are more than one worker can decide on a small
// machine; what is sent at all is what the processor manages beside everything else.
var floods = []struct {
	name   string
	from   string
	flood  traffic.Flood
	others []string // whose connections must not notice
	alarm  counter.Alarm
}{
	{"SYNs of a pod", "shopper", traffic.Flood{Network: "tcp", Rate: 400_000}, []string{"web-1", "n1", lab.OutsideName}, counter.AlarmShare},
	{"SYNs of many addresses outside", lab.OutsideName, traffic.Flood{Network: "tcp", Rate: 400_000, From: netip.MustParsePrefix("198.51.100.0/24")}, []string{"shopper", "web-1", "n1", lab.OutsideName}, counter.AlarmShare},
	{"datagrams of a pod, each a new flow", "shopper", traffic.Flood{Network: "udp", Rate: 400_000}, []string{"web-1", "n1", lab.OutsideName}, counter.AlarmShare},
}

// While one port floods, connections of others go on and begin as ever, the flow table
// keeps its bounds, alarms say what goes on and cease afterwards, and each packet is counted.
func TestFlood(t *testing.T) {
	for _, lane := range lanes {
		t.Run("lane "+lane, func(t *testing.T) {
			c := newCluster(t, lab.Topology{Lane: lane, Forgetful: true})
			for _, f := range floods {
				t.Run(f.name, func(t *testing.T) {
					var streams []*lab.Stream
					for _, from := range append(f.others, "visitor") {
						for _, w := range ways {
							streams = append(streams, c.stream(t, from, w, "solo", 2))
						}
					}
					goOn(t, streams)
					f.flood.To = vip("web", 4)
					c.flooded(t, f.from, f.flood, f.alarm, func() {
						goOn(t, streams)
						for _, from := range f.others {
							c.connects(t, from)
						}
						goOn(t, streams)
						c.finish(t, streams)
					})
				})
			}
		})
	}
}

// connects makes connections of each kind, one after the other, all of which must be
// answered. The time is what a client waits before it gives up a connection.
func (c *cluster) connects(t *testing.T, from string) {
	t.Helper()
	for _, w := range ways {
		r := w.to("solo")
		r.Timeout = silence
		if w.network == "udp" {
			r.Timeout = 0 // asked again by whoever wants an answer
		}
		tally, err := c.host(t, from).Burst(t.Context(), traffic.Burst{Request: r, Count: 50, Parallel: 4})
		c.must(t, err)
		if w.network == "tcp" && tally.Failed() > 0 {
			t.Errorf("%s over %s: %d of %d new connections failed: %s", from, w, tally.Failed(), tally.Attempts, tally.First)
		}
		t.Logf("%s over %s: %d of %d answered, slowest after %s", from, w, tally.Attempts-tally.Failed(), tally.Attempts, tally.Slowest)
	}
}

// flooded does something while a host floods, and wants the alarm meanwhile, and no alarm
// and a complete account afterwards.
func (c *cluster) flooded(t *testing.T, from string, flood traffic.Flood, alarm counter.Alarm, do func()) {
	t.Helper()
	before, beforeKernel, dropped := c.totals(t, "n1"), c.lane(t, "n1"), c.drops(t, "n1")
	running, err := c.host(t, from).StartFlood(t.Context(), flood)
	c.must(t, err)
	begin := time.Now()
	within(t, silence, "alarm", func() bool { return c.raised(t, "n1", alarm) })
	do()
	room := before.Gauges[counter.FlowCapacity]
	now := c.totals(t, "n1")
	if now.Gauges[counter.Flows] > room {
		t.Errorf("%d flows, there is room for %d", now.Gauges[counter.Flows], room)
	}
	took := time.Since(begin)
	sent, err := running.Stop(t.Context())
	c.must(t, err)
	within(t, silence, "end of the alarms", func() bool { return c.totals(t, "n1").Gauges[counter.RaisedAlarms] == 0 })
	missing := ""
	for deadline := time.Now().Add(silence); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if missing = c.accounted(t, before, beforeKernel); missing == "" {
			break
		}
	}
	if missing != "" {
		t.Error(missing)
	}
	after := c.totals(t, "n1")
	drops := c.drops(t, "n1")
	for why, n := range dropped {
		drops[why] -= n
	}
	t.Logf("%d packets in %s, %.0f a second; %d flows of %d, evicted %d, policed %d, refused %d, lost on the trunk %d",
		sent, took.Round(time.Millisecond), float64(sent)/took.Seconds(), now.Gauges[counter.Flows], room,
		after.Gauges[counter.Evicted]-before.Gauges[counter.Evicted], drops["policed"], drops["flow-share-full"]+drops["half-open-full"],
		lost(after)-lost(before))
}

// raised asks for a Problem, as people do, and for the gauge.
func (c *cluster) raised(t *testing.T, node string, alarm counter.Alarm) bool {
	t.Helper()
	totals := c.totals(t, node)
	if !totals.Raised(alarm) {
		return false
	}
	admin := c.Node(node).Admin()
	defer admin.Close()
	list, err := admin.Problems(t.Context())
	c.must(t, err)
	for _, p := range list.Items {
		if p.Reason == "PortShareNearlyFull" || p.Reason == "PortPoliced" {
			return true
		}
	}
	return false
}

func (c *cluster) totals(t *testing.T, node string) counter.Totals {
	t.Helper()
	r, err := counter.Open(c.stateFile(node, "counters"))
	c.must(t, err)
	defer r.Close()
	return r.Totals()
}

// lost is what was punted and never reached a worker.
func lost(t counter.Totals) uint64 {
	return t.Events[counter.Overruns] + t.Gauges[counter.TrunkDropped]
}
