package e2e

import (
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/table"
)

// What the lane repeats is taken back: an endpoint is withdrawn, a Service deleted, an
// address given to another pod, a route or a neighbour changed, while 64 flows send as fast
// as they go. From the moment at which the node says that it goes by the change, or the
// kernel has taken it, nothing arrives where it must not any more, but for what a processor
// had in hand just then. How long that takes is printed.
func TestRevoke(t *testing.T) {
	c := newCluster(t, lab.Topology{RPFilter: 1, Workers: 2, Lane: "on"})
	for _, family := range []int{4, 6} {
		r := newRevoking(t, c, family)
		for _, one := range []struct {
			name, from, to string
			change         func() time.Time
			restore        func()
			beyond         bool // looked at where packets leave n1: what is behind it may still be on its way
		}{
			{"an endpoint is withdrawn", "web-1", "web-2", r.withdraw, func() {}, false},
			{"an address is given to another pod", "web-1", "web-2", r.reuse, r.giveBack, false},
			{"a route is changed", "web-3", "", r.reroute, r.routeBack, true},
			{"a neighbour is changed", "web-3", "", r.renew, r.renewBack, true},
			{"the Service is deleted", "web-1", "", r.remove, r.declare, false},
		} {
			t.Run(one.name+", IPv"+string('0'+rune(family)), func(t *testing.T) {
				r.t, r.w.t = t, t
				defer one.restore()
				r.measure(one.from, one.to, one.change, one.beyond)
			})
		}
		r.t, r.w.t = t, t
		r.close()
	}
}

// revoking is one family's flows of shopper to a Service whose endpoints count what they get.
type revoking struct {
	*cluster
	t      *testing.T
	w      *wires
	family int
	sinks  map[string]*lab.Sink
}

const (
	sinkPort    = 9191
	revokedName = "revoked"
)

var sinkPorts = []manifests.Port{{Name: "echo", Protocol: "UDP", Port: sinkPort}}

func newRevoking(t *testing.T, c *cluster, family int) *revoking {
	t.Helper()
	vips[revokedName] = map[int]string{4: "10.96.0.80", 6: "fd00:10:96::80"}
	r := &revoking{cluster: c, t: t, w: newWires(t, c), family: family, sinks: map[string]*lab.Sink{}}
	for _, pod := range lab.WebPods {
		s, err := c.Pod(pod).Sink(t.Context(), family, sinkPort)
		c.must(t, err)
		r.sinks[pod] = s
	}
	r.declare()
	return r
}

func (r *revoking) close() {
	r.t.Helper()
	for _, s := range r.sinks {
		r.must(r.t, s.Close(r.t.Context()))
	}
}

// declare writes the Service.
func (r *revoking) declare() {
	r.t.Helper()
	yaml := `{apiVersion: v1, kind: Service, metadata: {name: ` + revokedName + `, namespace: default}, spec: {
clusterIP: 10.96.0.80, clusterIPs: [10.96.0.80, "fd00:10:96::80"], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack,
ports: [{name: echo, protocol: UDP, port: 80}]}}`
	r.cluster.declare(r.t, revokedName, []byte(yaml))
	r.lead("web-1")
}

// lead lets the Service have one endpoint and waits until it has.
func (r *revoking) lead(pod string) {
	r.t.Helper()
	endpoints := r.endpoints(r.t, manifests.Ready, pod)
	r.write(endpoints)
	r.must(r.t, r.AwaitService(r.t.Context(), revokedName, endpoints))
}

func (r *revoking) write(endpoints []manifests.Endpoint) {
	r.t.Helper()
	b, err := manifests.Slices(revokedName, sinkPorts, endpoints)
	r.must(r.t, err)
	r.cluster.declare(r.t, revokedName+"-endpoints", b)
}

// measure sends to one endpoint, makes a change, and looks at what still arrives there, or
// leaves the node for there.
func (r *revoking) measure(from, to string, change func() time.Time, beyond bool) {
	t := r.t
	t.Helper()
	r.lead(from)
	spray, err := r.Pod("shopper").Spray(t.Context(), lab.SprayArgs{To: vip(revokedName, r.family), Flows: 64, Every: time.Millisecond})
	r.must(t, err)
	var leaving *departures
	if beyond {
		leaving = watchDepartures(t, r.Node("n1").PID(), "eth0", r.macOf("n2"))
	}
	r.inFullSwing(from)
	valid := change()
	last := r.silent(from)
	late := r.since(from, valid).Since
	if beyond {
		late, last = leaving.since(valid)
	}
	if allowed := runtime.NumCPU(); late > allowed {
		t.Errorf("%d packets went to %s after the change was in use, want %d at most", late, from, allowed)
	}
	if to != "" {
		before := r.since(to, valid)
		eventually(t, "packets at "+to, func() bool { return r.since(to, valid).All > before.All+100 })
	}
	sent, err := spray.Stop(t.Context())
	r.must(t, err)
	t.Logf("%d packets sent; the last wrong one went %+d µs after the change was in use, %d behind it", sent, last.Sub(valid).Microseconds(), late)
}

func (r *revoking) macOf(node string) net.HardwareAddr {
	return r.w.link(handle(r.t, r.Node(node).PID()), "eth0").Attrs().HardwareAddr
}

func (r *revoking) since(pod string, moment time.Time) lab.Arrivals {
	r.t.Helper()
	a, err := r.sinks[pod].Since(r.t.Context(), moment)
	r.must(r.t, err)
	return a
}

// inFullSwing waits until an endpoint gets packets and the lane carries nearly all of them.
func (r *revoking) inFullSwing(pod string) {
	r.t.Helper()
	eventually(r.t, "flows in the lane", func() bool {
		before, came := r.lane(r.t, "n1"), r.since(pod, time.Time{}).All
		time.Sleep(20 * time.Millisecond)
		after := r.lane(r.t, "n1")
		_, left := punts(before, after)
		return after.Hits.Packets > before.Hits.Packets+500 && left < 10 && r.since(pod, time.Time{}).All > came+100
	})
}

// silent waits until nothing arrives at an endpoint any more, and says when the last came.
func (r *revoking) silent(pod string) time.Time {
	r.t.Helper()
	last, since := r.since(pod, time.Time{}), time.Now()
	eventually(r.t, "silence of "+pod, func() bool {
		now := r.since(pod, time.Time{})
		if now.All != last.All {
			last, since = now, time.Now()
		}
		return time.Since(since) > 200*time.Millisecond
	})
	return last.Last
}

// taken does something that changes the tables, and says when n1 went by them.
func (r *revoking) taken(do func()) time.Time {
	r.t.Helper()
	before := r.inUse().Generation
	do()
	var now inUse
	eventually(r.t, "new generation in use", func() bool { now = r.inUse(); return now.Generation > before })
	if s, err := table.Open(r.stateFile("n1", "snapshot")); err == nil && s.Generation() == now.Generation {
		r.t.Logf("in use %d µs after the agent began to write it", now.Since.Sub(time.Unix(0, s.CreatedAt())).Microseconds())
		s.Close()
	}
	return now.Since
}

// inUse is what n1's fast path says that it goes by.
type inUse struct {
	Generation uint64
	Since      time.Time
}

func (r *revoking) inUse() inUse {
	r.t.Helper()
	f, err := counter.Open(r.stateFile("n1", "counters"))
	r.must(r.t, err)
	defer f.Close()
	g := f.Totals().Gauges
	return inUse{g[counter.Generation], time.Unix(0, int64(g[counter.InUseSince]))}
}

func (r *revoking) withdraw() time.Time {
	r.t.Helper()
	endpoints := r.endpoints(r.t, manifests.Ready, "web-2")
	return r.taken(func() {
		r.write(endpoints)
		// An API server takes the slice of each family by itself, so that there may be two generations.
		r.must(r.t, r.AwaitService(r.t.Context(), revokedName, endpoints))
	})
}

func (r *revoking) remove() time.Time {
	r.t.Helper()
	return r.taken(func() {
		// The Service first, so that it is not seen without endpoints.
		r.retract(r.t, revokedName, revokedName+"-endpoints")
	})
}

// reuse gives web-1's address to web-2, as an address pool does; web-1 does not know.
func (r *revoking) reuse() time.Time {
	r.t.Helper()
	a := r.Pod("web-1").Addr(r.family)
	pod := handle(r.t, r.Pod("web-2").PID())
	return r.taken(func() {
		r.must(r.t, pod.AddrReplace(r.w.link(pod, "eth0"), &netlink.Addr{IPNet: alone(a), Flags: unix.IFA_F_NODAD}))
		r.must(r.t, r.w.node.RouteReplace(r.hostRoute("web-2", a)))
		if r.family == 6 { // where a second route does not replace the first
			_ = r.w.node.RouteDel(r.hostRoute("web-1", a))
		}
	})
}

func (r *revoking) giveBack() {
	r.t.Helper()
	a := r.Pod("web-1").Addr(r.family)
	pod := handle(r.t, r.Pod("web-2").PID())
	r.must(r.t, pod.AddrDel(r.w.link(pod, "eth0"), &netlink.Addr{IPNet: alone(a)}))
	r.must(r.t, r.w.node.RouteReplace(r.hostRoute("web-1", a)))
	if r.family == 6 {
		_ = r.w.node.RouteDel(r.hostRoute("web-2", a))
	}
	admin := r.Node("n1").Admin()
	defer admin.Close()
	eventually(r.t, "address of web-1 at its own device", func() bool {
		list, err := admin.Ports(r.t.Context())
		r.must(r.t, err)
		for _, p := range list.Items {
			if p.Device == "web-1" {
				return strings.Contains(strings.Join(p.Addresses, " ")+" ", a.String()+" ")
			}
		}
		return false
	})
}

func (r *revoking) hostRoute(device string, a netip.Addr) *netlink.Route {
	return &netlink.Route{LinkIndex: r.w.link(r.w.node, device).Attrs().Index, Dst: alone(a), Scope: netlink.SCOPE_LINK}
}

// reroute sends the pods of n2 by way of the outside host, which does not forward.
func (r *revoking) reroute() time.Time { return r.route(r.Outside().Addr(r.family)) }

func (r *revoking) routeBack() { r.route(r.Node("n2").Addr(r.family)) }

func (r *revoking) route(via netip.Addr) time.Time {
	r.t.Helper()
	a := r.Pod("web-3").Addr(r.family)
	bits := 24
	if r.family == 6 {
		bits = 64
	}
	mask := net.CIDRMask(bits, a.BitLen())
	eth0 := r.w.link(r.w.node, "eth0").Attrs().Index
	r.must(r.t, r.w.node.RouteReplace(&netlink.Route{LinkIndex: eth0, Dst: &net.IPNet{IP: net.IP(a.AsSlice()).Mask(mask), Mask: mask}, Gw: via.AsSlice()}))
	return time.Now()
}

// renew lets the outside host be who answers for n2's address.
func (r *revoking) renew() time.Time {
	r.t.Helper()
	outside := r.w.link(handle(r.t, r.Outside().PID()), "eth0").Attrs().HardwareAddr
	r.neighbour(outside, netlink.NUD_PERMANENT)
	return time.Now()
}

func (r *revoking) renewBack() {
	r.t.Helper()
	r.neighbour(r.macOf("n2"), netlink.NUD_STALE)
}

func (r *revoking) neighbour(mac net.HardwareAddr, state int) {
	r.t.Helper()
	eth0 := r.w.link(r.w.node, "eth0").Attrs().Index
	r.must(r.t, r.w.node.NeighSet(&netlink.Neigh{LinkIndex: eth0, IP: r.Node("n2").Addr(r.family).AsSlice(), HardwareAddr: mac, State: state}))
}
