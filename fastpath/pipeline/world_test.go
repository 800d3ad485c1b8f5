package pipeline

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/affinity"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// The places of every test. A name stands for one address in each family.
//
//	node                 the node itself (host network)         port 1, lace0
//	client, web, other   pods on the node                       ports 2, 3, 4
//	wire                 everything beyond the uplink           port 5
//	ghost                a port that the tables do not have     port 99
//	remote, remote2      pods on another node, behind the wire
//	outside              a client outside the cluster, behind the wire
//	router               somebody on the way to either, who speaks in its own name only
//	vip, vip2            addresses of Services
//	nobody               an address in the service range that no Service has
var places = map[string][2]string{
	"node":    {"172.30.0.11", "fd30::11"},
	"client":  {"10.244.1.2", "fd00:10:244:1::2"},
	"web":     {"10.244.1.3", "fd00:10:244:1::3"},
	"other":   {"10.244.1.4", "fd00:10:244:1::4"},
	"remote":  {"10.244.2.3", "fd00:10:244:2::3"},
	"remote2": {"10.244.2.4", "fd00:10:244:2::4"},
	"outside": {"172.30.0.100", "fd30::100"},
	"router":  {"198.51.100.1", "2001:db8::1"},
	"vip":     {"10.96.0.10", "fd00:10:96::10"},
	"vip2":    {"10.96.0.11", "fd00:10:96::11"},
	"nobody":  {"10.96.0.99", "fd00:10:96::99"},
}

var portIDs = map[string]uint16{"node": 1, "client": 2, "web": 3, "other": 4, "wire": 5, "ghost": 99}

// world is one node: its tables, its flow table, a pipeline and a clock.
type world struct {
	t        testing.TB
	family   int // 4 or 6
	protocol uint8
	flows    *conntrack.Table
	pipeline *Pipeline
	clock    time.Duration
	contents table.Contents
	snapshot *table.Snapshot
	services map[string]*service // by VIP name
	backends map[string]*table.Backend
	nextID   uint32
	calling  int // how many flows calls has opened
}

// service is what the test says about the frontend NAME:80.
type service struct {
	frontend        table.Frontend
	inside, outside []string // backends, NAME:PORT
	keep            []string // further ones that may keep flows
	sources         []table.Range
}

// newWorld is a node without Services.
func newWorld(t testing.TB, family int, protocol uint8) *world {
	flows, err := conntrack.New(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, family: family, protocol: protocol, flows: flows, clock: time.Hour,
		pipeline: New(Config{Flows: flows, Affinity: affinity.New(1024), Rand: rand.New(rand.NewPCG(1, 2))}),
		services: map[string]*service{}, backends: map[string]*table.Backend{},
	}
	w.contents.Settings = table.DefaultSettings()
	w.contents.Settings.NodeAddr4, w.contents.Settings.NodeAddr6 = both("node")
	for name, id := range portIDs {
		if name == "ghost" {
			continue
		}
		p := table.Port{ID: id, Kind: table.PortPod, Ifindex: uint32(id), MTU: 1500, Generation: 1}
		switch name {
		case "node":
			p.Kind = table.PortHost
		case "wire":
			p.Kind = table.PortUplink
		}
		if err := p.SetDevice(name); err != nil {
			t.Fatal(err)
		}
		w.contents.Ports = append(w.contents.Ports, p)
		if name == "wire" {
			continue
		}
		a4, a6 := both(name)
		w.contents.Addresses = append(w.contents.Addresses, table.Address{Addr: a4, Port: id}, table.Address{Addr: a6, Port: id})
	}
	for _, prefix := range []string{"0.0.0.0/0", "::/0"} {
		w.route(prefix, "wire")
	}
	w.publish()
	return w
}

func both(name string) (v4, v6 packet.Addr) {
	p := places[name]
	return packet.AddrFrom(netip.MustParseAddr(p[0])), packet.AddrFrom(netip.MustParseAddr(p[1]))
}

// addr is the address of a place in the world's family.
func (w *world) addr(name string) netip.Addr {
	p, ok := places[name]
	if !ok {
		w.t.Fatalf("no place is called %q", name)
	}
	return netip.MustParseAddr(p[(w.family-4)/2])
}

// endpoint turns NAME:PORT into an address and port.
func (w *world) endpoint(s string) netip.AddrPort {
	w.t.Helper()
	name, port, ok := strings.Cut(s, ":")
	var n uint16
	if _, err := fmt.Sscan(port, &n); !ok || err != nil {
		w.t.Fatalf("%q is not NAME:PORT", s)
	}
	return netip.AddrPortFrom(w.addr(name), n)
}

func (w *world) route(prefix, port string) {
	p := netip.MustParsePrefix(prefix)
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	w.contents.Routes = append(w.contents.Routes, table.Route{
		Prefix: packet.AddrFrom(p.Addr()), Bits: uint8(bits), Port: portIDs[port],
	})
}

// serve makes vip:80 a frontend with these backends for every client.
func (w *world) serve(vip string, backends ...string) { w.serveApart(vip, backends, backends) }

// serveApart gives clients inside and outside the cluster backends of their own.
func (w *world) serveApart(vip string, inside, outside []string) {
	s := w.services[vip]
	if s == nil {
		w.nextID++
		s = &service{frontend: table.Frontend{
			ID: w.nextID, Addr: packet.AddrFrom(w.addr(vip)), Port: 80, Protocol: w.protocol, Generation: 1,
		}}
		w.services[vip] = s
	}
	s.inside, s.outside = inside, outside
	for _, b := range slices.Concat(inside, outside) {
		w.backend(b).Serving = 1
	}
	w.publish()
}

// backend finds the record of NAME:PORT, or makes it.
func (w *world) backend(s string) *table.Backend {
	b := w.backends[s]
	if b == nil {
		w.nextID++
		e := w.endpoint(s)
		b = &table.Backend{
			ID: w.nextID, Addr: packet.AddrFrom(e.Addr()), Port: e.Port(), Protocol: w.protocol, Generation: 1,
		}
		w.backends[s] = b
	}
	return b
}

// stopServing marks a backend: it is there, but may keep no flows.
func (w *world) stopServing(s string) {
	b := w.backend(s)
	b.Serving = 0
	b.Generation++
	w.publish()
}

// remove takes a backend out of the tables altogether.
func (w *world) remove(s string) {
	delete(w.backends, s)
	for _, service := range w.services {
		gone := func(name string) bool { return name == s }
		service.inside = slices.DeleteFunc(slices.Clone(service.inside), gone)
		service.outside = slices.DeleteFunc(slices.Clone(service.outside), gone)
	}
	w.publish()
}

// port changes a port's record.
func (w *world) port(name string, change func(*table.Port)) {
	for i := range w.contents.Ports {
		if w.contents.Ports[i].ID == portIDs[name] {
			change(&w.contents.Ports[i])
		}
	}
	w.publish()
}

// unplug takes a port out of the tables.
func (w *world) unplug(name string) {
	w.contents.Ports = slices.DeleteFunc(w.contents.Ports, func(p table.Port) bool { return p.ID == portIDs[name] })
	w.publish()
}

// moveTo makes a place live behind the port of another.
func (w *world) moveTo(name, port string) {
	a4, a6 := both(name)
	for i := range w.contents.Addresses {
		if a := &w.contents.Addresses[i]; a.Addr == a4 || a.Addr == a6 {
			a.Port = portIDs[port]
		}
	}
	w.publish()
}

// publish makes a snapshot of what the test has said so far.
func (w *world) publish() {
	w.t.Helper()
	c := w.contents
	c.Generation++
	w.contents.Generation = c.Generation
	c.Frontends, c.Backends, c.BackendIDs = nil, nil, nil
	for _, b := range w.backends {
		c.Backends = append(c.Backends, *b)
	}
	for _, s := range w.services {
		f := s.frontend
		f.Inside, f.Outside = w.set(&c, s.inside, f.Inside.Empty), w.set(&c, s.outside, f.Outside.Empty)
		keep := w.set(&c, slices.Concat(s.inside, s.outside, s.keep), 0)
		f.Keep = table.Run{First: keep.First, Count: keep.Count}
		f.Sources = table.Run{First: uint32(len(c.Ranges)), Count: uint32(len(s.sources))}
		c.Ranges = append(c.Ranges, s.sources...)
		c.Frontends = append(c.Frontends, f)
	}
	w.snapshot = load(w.t, &c)
}

func (w *world) set(c *table.Contents, names []string, empty table.Empty) table.Set {
	s := table.Set{First: uint32(len(c.BackendIDs)), Count: uint32(len(names)), Empty: empty}
	for _, n := range names {
		c.BackendIDs = append(c.BackendIDs, w.backend(n).ID)
	}
	return s
}

func load(t testing.TB, c *table.Contents) *table.Snapshot {
	t.Helper()
	b, err := table.Encode(nil, c)
	if err != nil {
		t.Fatalf("tables of the test: %v", err)
	}
	s, err := table.Load(b)
	if err != nil {
		t.Fatalf("tables of the test: %v", err)
	}
	return s
}
