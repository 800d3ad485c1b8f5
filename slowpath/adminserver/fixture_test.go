package adminserver

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/xdp"
)

// played is a node with a Service web (two pods, one here and one on n2), a Service
// without endpoints, and one flow.
type played struct {
	state    *publish.State
	contents table.Contents
	flows    *conntrack.Table
	noFlows  error
	totals   *counter.Totals
	kernel   *xdp.Counters
	routed   map[string]string       // device by destination, where it is not lace0
	places   map[string]source.Place // by object
	down     string                  // why the fast path is not running; empty: it is
}

func ip(s string) netip.Addr   { return netip.MustParseAddr(s) }
func key(s string) packet.Addr { return packet.AddrFrom(ip(s)) }
func (p *played) Status() api.Status {
	return api.Status{
		Node: "n1", Mode: "lace", Waiting: "the source",
		Fastpath: api.Fastpath{Alive: p.down == "", Message: p.down},
	}
}
func (p *played) State() *publish.State { return p.state }
func (p *played) Ranges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}
}
func (p *played) Leaves(to netip.Addr) (string, error) {
	if device, other := p.routed[to.String()]; other {
		return device, nil
	}
	return "lace0", nil
}
func (p *played) Place(of model.Problem) source.Place      { return p.places[of.Object] }
func (p *played) Counts() (*counter.Totals, *xdp.Counters) { return p.totals, p.kernel }

func (p *played) Tables() (*table.Snapshot, error) {
	b, err := table.Encode(nil, &p.contents)
	if err != nil {
		return nil, err
	}
	return table.Load(b)
}

// view closes without effect, for a table that the test keeps.
type view struct{ *conntrack.Table }

func (view) Close() error { return nil }

func (p *played) Flows() (FlowTable, error) {
	if p.noFlows != nil {
		return nil, p.noFlows
	}
	return view{p.flows}, nil
}

func newPlayed(t *testing.T) *played {
	t.Helper()
	flows, err := conntrack.New(1 + 64*conntrack.BucketSlots)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]source.Place{"default/broken": {File: "web.yaml", Document: 2, Line: 9, Item: "items[3]"}}
	return &played{state: playedState(), contents: playedTables(t), flows: flows, places: places}
}

func playedState() *publish.State {
	here := model.Endpoint{Addr: ip("10.244.1.5"), Port: 8080, Node: "n1", Pod: "default/web-1", Ready: true, Serving: true}
	there := model.Endpoint{Addr: ip("10.244.2.6"), Port: 8080, Node: "n2", Pod: "default/web-2", Ready: true, Serving: true}
	draining := model.Endpoint{Addr: ip("10.244.2.7"), Port: 8080, Node: "n2", Pod: "default/web-3", Serving: true, Terminating: true}
	all := model.Choice{
		Endpoints: []model.Endpoint{here, there}, Tier: "all", Any: true,
		Excluded: []model.Exclusion{{Endpoint: draining, Reason: "terminating"}},
	}
	web := &model.Service{Name: model.Name{Namespace: "default", Name: "web"}, Ports: []model.ServicePort{{
		Name: "http", Protocol: model.TCP, Port: 80,
		Frontends: []model.Frontend{
			{Kind: model.ClusterIP, Addr: ip("10.96.0.10"), Port: 80, Protocol: model.TCP},
			{Kind: model.ClusterIP, Addr: ip("fd00:10:96::10"), Port: 80, Protocol: model.TCP},
		},
		Families: map[int]model.FamilyChoice{
			4: {Endpoints: []model.Endpoint{here, there, draining}, Internal: all, External: all, Cluster: all},
			6: {},
		},
	}}}
	empty := &model.Service{Name: model.Name{Namespace: "shop", Name: "empty"}, ExternalPolicy: model.PolicyLocal, HealthPort: 32002, Ports: []model.ServicePort{{
		Protocol: model.UDP, Port: 53,
		Frontends: []model.Frontend{{Kind: model.ClusterIP, Addr: ip("10.96.0.20"), Port: 53, Protocol: model.UDP}},
		Families:  map[int]model.FamilyChoice{4: {}},
	}}}
	return &publish.State{
		Generation: 7, Published: time.Unix(1_700_000_000, 0), Node: model.Node{Name: "n1"},
		Services: []*model.Service{web, empty},
		Problems: []model.Problem{{Kind: "Service", Object: "default/broken", Field: "spec.ports[0]", Reason: "BadPort", Message: "say another"}},
		Attachments: model.Attachments{
			Node4: ip("172.30.0.11"),
			Ports: []model.Port{
				{ID: 1, Kind: model.PortHost, Device: "lace0", Ifindex: 4, MTU: 3498, Addresses: []netip.Addr{ip("172.30.0.11")}},
				{ID: 2, Kind: model.PortUplink, Device: "eth0", Ifindex: 2, MTU: 1500, HostMAC: [6]byte{2, 0, 0, 0, 0, 2}},
				{ID: 3, Kind: model.PortPod, Device: "vethA", Ifindex: 9, MTU: 1500, PeerMAC: [6]byte{2, 0, 0, 0, 0, 9}, Addresses: []netip.Addr{ip("10.244.1.5")}},
				{ID: 4, Kind: model.PortPod, Device: "shopper", Ifindex: 10, MTU: 1500, Addresses: []netip.Addr{ip("10.244.1.8")}},
			},
			Routes: []model.Route{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 2}},
		},
	}
}

func playedTables(t *testing.T) table.Contents {
	t.Helper()
	c := table.Contents{Generation: 7, Created: 1, Settings: table.DefaultSettings()}
	c.Settings.NodeAddr4 = key("172.30.0.11")
	for _, p := range []struct {
		id     uint16
		kind   table.PortKind
		device string
	}{{1, table.PortHost, "lace0"}, {2, table.PortUplink, "eth0"}, {3, table.PortPod, "vethA"}, {4, table.PortPod, "shopper"}} {
		one := table.Port{ID: p.id, Kind: p.kind, Ifindex: uint32(p.id), MTU: 1500}
		if err := one.SetDevice(p.device); err != nil {
			t.Fatal(err)
		}
		c.Ports = append(c.Ports, one)
	}
	c.Backends = []table.Backend{
		{ID: 1, Addr: key("10.244.1.5"), Port: 8080, Protocol: packet.ProtocolTCP, Serving: 1},
		{ID: 2, Addr: key("10.244.2.6"), Port: 8080, Protocol: packet.ProtocolTCP, Serving: 1},
	}
	c.BackendIDs = []uint32{1, 2}
	both := table.Set{First: 0, Count: 2}
	c.Frontends = []table.Frontend{
		{ID: 1, Addr: key("10.96.0.10"), Port: 80, Protocol: packet.ProtocolTCP, Inside: both, Outside: both},
		{ID: 2, Addr: key("10.96.0.20"), Port: 53, Protocol: packet.ProtocolUDP},
	}
	c.Addresses = []table.Address{
		{Addr: key("172.30.0.11"), Port: 1}, {Addr: key("10.244.1.5"), Port: 3}, {Addr: key("10.244.1.8"), Port: 4},
	}
	c.Routes = []table.Route{{Prefix: key("0.0.0.0"), Bits: 96, Port: 2}, {Prefix: key("10.9.0.0"), Bits: 112, Port: 1}}
	return c
}

// register enters a flow from client to the Service web as the pipeline does.
func (p *played) register(t *testing.T, client netip.AddrPort, backend netip.AddrPort, source netip.AddrPort) {
	t.Helper()
	now := conntrack.Tick(monotonic())
	fwd := conntrack.Flow{
		Tuple: conntrack.Tuple{
			Src: packet.AddrFrom(client.Addr()), SrcPort: client.Port(), Dst: key("10.96.0.10"), DstPort: 80,
			Protocol: packet.ProtocolTCP,
		},
		Rewrite: conntrack.Rewrite{
			Src: packet.AddrFrom(source.Addr()), SrcPort: source.Port(),
			Dst: packet.AddrFrom(backend.Addr()), DstPort: backend.Port(),
		},
		Frontend: 1, Backend: 1, Target: 3, State: conntrack.StateSeen | conntrack.StateSYN,
	}
	rev := conntrack.Flow{
		Tuple: conntrack.Tuple{
			Src: fwd.Rewrite.Dst, SrcPort: fwd.Rewrite.DstPort, Dst: fwd.Rewrite.Src, DstPort: fwd.Rewrite.SrcPort,
			Protocol: packet.ProtocolTCP,
		},
		Rewrite:  conntrack.Rewrite{Src: fwd.Dst, SrcPort: fwd.DstPort, Dst: fwd.Src, DstPort: fwd.SrcPort},
		Frontend: 1, Backend: 1, Target: 4, Flags: conntrack.FlagReply,
	}
	if r := p.flows.Insert(&fwd, &rev, now); r != conntrack.Inserted {
		t.Fatalf("the flow was not registered: %v", r)
	}
}

// reset lets every registered flow see a reset, which closes it.
func (p *played) reset(t *testing.T) {
	t.Helper()
	p.flows.Range(func(f *conntrack.Flow) bool {
		if !p.flows.Touch(f, conntrack.StateRST, conntrack.Tick(monotonic())) {
			t.Fatal("the flow is gone")
		}
		return true
	})
}

// ask starts a server for the node and returns a client of it.
func ask(t *testing.T, n Node) *api.Client {
	t.Helper()
	_, path := serve(t, n)
	c := api.NewClient(path)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, n Node) (*Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.sock")
	s, err := New(Config{Socket: path, Node: n})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s, path
}

var errNoTable = errors.New("no flow table: the fast path has not run here")

func counted() (*counter.Totals, *xdp.Counters) {
	totals, kernel := &counter.Totals{}, &xdp.Counters{}
	totals.Reasons[reason.Established] = counter.Tally{Packets: 1000, Bytes: 1}
	totals.Reasons[reason.NoEndpoints] = counter.Tally{Packets: 3, Bytes: 180}
	totals.Reasons[reason.Fragment] = counter.Tally{Packets: 2, Bytes: 3000}
	kernel.Reasons[reason.SpoofedSource] = xdp.Count{Packets: 6, Bytes: 400}
	kernel.Reasons[reason.NotClaimed] = xdp.Count{Packets: 5000, Bytes: 1}
	return totals, kernel
}
