package dataplane

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

type noFlows struct{}

func (noFlows) Range(func(*conntrack.Flow) bool) {}

// oneFlow is a table with one flow, to the backend.
func oneFlow(t *testing.T, client, vip, backend packet.Addr) *conntrack.Table {
	t.Helper()
	flows, err := conntrack.New(64)
	if err != nil {
		t.Fatal(err)
	}
	fwd := conntrack.Flow{Tuple: conntrack.Tuple{Src: client, Dst: vip, SrcPort: 40000, DstPort: 80, Protocol: packet.ProtocolUDP}}
	fwd.Rewrite = conntrack.Rewrite{Src: client, Dst: backend, SrcPort: 40000, DstPort: 8080}
	rev := conntrack.Flow{Tuple: conntrack.Tuple{Src: backend, Dst: client, SrcPort: 8080, DstPort: 40000, Protocol: packet.ProtocolUDP}}
	rev.Rewrite = conntrack.Rewrite{Src: vip, Dst: client, SrcPort: 80, DstPort: 40000}
	if got := flows.Insert(&fwd, &rev, 1); got != conntrack.Inserted {
		t.Fatalf("the flow was not inserted: %v", got)
	}
	return flows
}

// addressBook is a kernel that remembers addresses.
type addressBook struct {
	addrs map[packet.Addr]bool
	fails error
}

func (b *addressBook) WidenBackends(addrs []packet.Addr) error {
	for _, a := range addrs {
		b.addrs[a] = true
	}
	return b.fails
}

func (b *addressBook) SetBackends(addrs []packet.Addr) error {
	clear(b.addrs)
	return b.WidenBackends(addrs)
}

// TestBackends: whose fragments are claimed, as tables come and go.
func TestBackends(t *testing.T) {
	addr := func(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }
	serving := func(addrs ...string) *table.Snapshot {
		c := table.Contents{Generation: 1, Settings: table.DefaultSettings()}
		for i, a := range addrs {
			c.Backends = append(c.Backends, table.Backend{ID: uint32(i + 1), Addr: addr(a), Port: 80, Protocol: packet.ProtocolUDP})
		}
		b, err := table.Encode(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		s, err := table.Load(b)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	book := &addressBook{addrs: map[packet.Addr]bool{}}
	b := backends{kernel: book, flows: oneFlow(t, addr("10.0.0.1"), addr("10.96.0.1"), addr("10.0.0.9"))}
	now := time.Unix(0, 0).Add(time.Hour)
	for _, step := range []struct {
		sentence string
		do       func() error
		fails    error
		want     []string
	}{
		{"at first the backends of tables and flows", func() error { return b.widen(serving("10.0.0.2"), now) }, nil, []string{"10.0.0.2", "10.0.0.9"}},
		{"a backend that goes stays for a while, for it may have flows", func() error { return b.widen(serving("10.0.0.3"), now) }, nil, []string{"10.0.0.2", "10.0.0.3", "10.0.0.9"}},
		{"nothing is forgotten soon", func() error { return b.narrow(serving("10.0.0.3"), now.Add(time.Minute)) }, nil, []string{"10.0.0.2", "10.0.0.3", "10.0.0.9"}},
		{"an error is told", func() error { return b.narrow(serving("10.0.0.3"), now.Add(settledAfter)) }, fmt.Errorf("no"), []string{"10.0.0.3", "10.0.0.9"}},
		{"later those without flows are forgotten", func() error { return b.narrow(serving("10.0.0.3"), now.Add(settledAfter)) }, nil, []string{"10.0.0.3", "10.0.0.9"}},
		{"the next tables only add", func() error { return b.widen(serving("10.0.0.4"), now) }, nil, []string{"10.0.0.3", "10.0.0.4", "10.0.0.9"}},
	} {
		book.fails = step.fails
		if err := step.do(); err != step.fails {
			t.Errorf("%s: error %v, want %v", step.sentence, err, step.fails)
		}
		want := map[packet.Addr]bool{}
		for _, a := range step.want {
			want[addr(a)] = true
		}
		if d := cmp.Diff(want, book.addrs); d != "" {
			t.Errorf("%s (-want +got)\n%s", step.sentence, d)
		}
	}
}

// TestBackendsOfALargeCluster: all are told, however many there are, and an error among them
// is not lost.
func TestBackendsOfALargeCluster(t *testing.T) {
	c := table.Contents{Generation: 1, Settings: table.DefaultSettings()}
	for i := range uint32(2*atATime + 1) {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		c.Backends = append(c.Backends, table.Backend{ID: i + 1, Addr: packet.AddrFrom(a), Port: 80, Protocol: packet.ProtocolUDP})
	}
	bytes, err := table.Encode(nil, &c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Load(bytes)
	if err != nil {
		t.Fatal(err)
	}
	book := &addressBook{addrs: map[packet.Addr]bool{}}
	b := backends{kernel: book, flows: noFlows{}}
	if err := b.widen(s, time.Now()); err != nil || len(book.addrs) != len(c.Backends) {
		t.Errorf("%d of %d addresses were told, error %v", len(book.addrs), len(c.Backends), err)
	}
	book.fails = fmt.Errorf("no")
	if err := b.widen(s, time.Now()); err != book.fails {
		t.Errorf("error %v, want %v", err, book.fails)
	}
}
