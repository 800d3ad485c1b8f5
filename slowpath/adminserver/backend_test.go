package adminserver

import (
	"fmt"
	"net/netip"
	"testing"

	elect "lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
)

// manyBackends is a node with that many Services of that many endpoints, every third of them
// not ready.
func manyBackends(services, endpoints int) *publish.State {
	s := &publish.State{Generation: 1, Node: model.Node{Name: "n1"}}
	for i := range services {
		all := make([]model.Endpoint, endpoints)
		for j := range all {
			all[j] = model.Endpoint{
				Addr: netip.AddrFrom4([4]byte{10, byte(i), byte(j >> 8), byte(j)}), Port: 8080,
				Ready: j%3 > 0, Serving: true, Node: "n2",
			}
		}
		c := elect.Select(all, elect.Query{Node: s.Node})
		s.Services = append(s.Services, &model.Service{
			Name: model.Name{Namespace: "demo", Name: fmt.Sprint("s", i)},
			Ports: []model.ServicePort{{Port: 80, Protocol: model.TCP, Families: map[int]model.FamilyChoice{
				4: {Endpoints: all, Internal: c, External: c, Cluster: c},
			}}},
		})
	}
	return s
}

// TestBackendsAreFoundAmongMany: each endpoint has the fate that it was given, and finding it
// costs a few looks, whatever the number.
func TestBackendsAreFoundAmongMany(t *testing.T) {
	s := manyBackends(1, 40_000)
	c := s.Services[0].Ports[0].Families[4]
	all, looks := func(*model.Endpoint) bool { return false }, 0
	for j := range c.Endpoints {
		e := &c.Endpoints[j]
		is, why := used(&c.Internal, e, all)
		if is != e.Ready || (why == "") != e.Ready {
			t.Fatalf("endpoint %d, ready %v: used %v %q", j, e.Ready, is, why)
		}
		if i := find(len(c.Endpoints), e, func(i int) *model.Endpoint { looks++; return &c.Endpoints[i] }); i != j {
			t.Fatalf("endpoint %d was found at %d", j, i)
		}
	}
	if most := 18 * len(c.Endpoints); looks > most {
		t.Errorf("%d looks at endpoints, want at most %d", looks, most)
	}
	other := c.Endpoints[0]
	other.Port++
	if is, why := used(&c.Internal, &other, all); is || why != "" {
		t.Errorf("an endpoint that is none: used %v %q", is, why)
	}
}

// TestOfCopiesTheOneThatCountsDecides: of an address and port that are there twice.
func TestOfCopiesTheOneThatCountsDecides(t *testing.T) {
	e := model.Endpoint{Addr: ip("10.244.1.5"), Port: 8080, Serving: true}
	copied := e
	copied.Terminating, copied.Serving = true, false
	c := elect.Select([]model.Endpoint{copied, e}, elect.Query{})
	if is, why := used(&c, &e, func(*model.Endpoint) bool { return false }); is || why != elect.NotReady {
		t.Errorf("used %v %q, want %q: %+v", is, why, elect.NotReady, c)
	}
}

// BenchmarkBackends is the list of lace get backends, without its way over the socket.
func BenchmarkBackends(b *testing.B) {
	raw, err := table.Encode(nil, &table.Contents{Generation: 1, Created: 1, Settings: table.DefaultSettings()})
	if err != nil {
		b.Fatal(err)
	}
	tables, err := table.Load(raw)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ services, endpoints int }{{5000, 50}, {50, 5000}, {5, 50_000}} {
		b.Run(fmt.Sprintf("%dx%d", c.services, c.endpoints), func(b *testing.B) {
			state := manyBackends(c.services, c.endpoints)
			b.ReportAllocs()
			for b.Loop() {
				if n := len(backendsOf(state, tables, nil)); n != c.services*c.endpoints {
					b.Fatal(n)
				}
			}
		})
	}
}
