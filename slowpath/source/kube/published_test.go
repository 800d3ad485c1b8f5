package kube

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/kube/kubetest"
)

// steady is how many Services never change while everything else does.
const steady = 2

// plantSteady writes them.
func plantSteady(s *kubetest.Store) {
	for i := range steady {
		name := fmt.Sprint("steady-", i)
		meta := metav1.ObjectMeta{Name: name, Namespace: "steady", Labels: map[string]string{discoveryv1.LabelServiceName: name}}
		svc := &corev1.Service{ObjectMeta: meta}
		svc.Spec.ClusterIP = steadyAddr(i).String()
		svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		s.Write(kubetest.Key("services", svc), svc)
		s.Write(kubetest.Key("endpointslices", svc), &discoveryv1.EndpointSlice{
			ObjectMeta: meta, AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.245.0.%d", 1+i)}}, {Addresses: []string{fmt.Sprintf("10.245.1.%d", 1+i)}}},
		})
	}
}

func steadyAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 97, 0, byte(1 + i)}) }

// wired is the node that publishes.
func wired() model.Attachments {
	node := netip.MustParseAddr("172.30.0.11")
	return model.Attachments{
		Ports: []model.Port{
			{ID: 1, Kind: model.PortHost, Device: "lace0", Ifindex: 2, MTU: 1500, Addresses: []netip.Addr{node}},
			{ID: 3, Kind: model.PortUplink, Device: "eth0", Ifindex: 3, MTU: 1500},
		},
		Routes: []model.Route{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 3}},
		Node4:  node,
	}
}

// published holds a publisher to what the API says: it is told what the mirror is told.
type published struct {
	*mirror
	t         *testing.T
	path      string
	publisher *publish.Publisher
	before    []byte // the snapshot of the life before
	released  bool   // the source said that it has read everything
	stop      func()
}

// newPublished starts a publisher beside the mirror, on a snapshot that an earlier life left:
// the steady Services as they are, and one that went meanwhile.
func newPublished(m *mirror, path string) *published {
	p := &published{mirror: m, t: m.t, path: path}
	older := resolve.NewObjects()
	s := kubetest.NewStore()
	plantSteady(s)
	gone := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gone", Namespace: "steady"}}
	gone.Spec.ClusterIP, gone.Spec.Ports = "10.97.0.250", []corev1.ServicePort{{Port: 80}}
	s.Write(kubetest.Key("services", gone), gone)
	fill(older, s.Objects())
	p.before = compiled(p.t, older, 7)
	if err := table.WriteFile(path, p.before); err != nil {
		p.t.Fatal(err)
	}
	var err error
	p.publisher, err = publish.New(publish.Config{
		Node: "n1", Path: path, Partial: true, Check: 24 * time.Hour, Log: slog.New(slog.DiscardHandler),
		Took: func(time.Duration) { p.look() },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.publisher.SetAttachments(wired(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = p.publisher.Run(ctx) })
	p.stop = func() { cancel(); ended.Wait() }
	return p
}

// Apply implements source.Sink.
func (p *published) Apply(changes []source.Change, problems []model.Problem) {
	p.mirror.Apply(changes, problems)
	p.publisher.Apply(changes, problems)
}

// Synced implements source.Sink. Until now nothing may have been programmed or removed.
func (p *published) Synced() {
	p.mirror.Synced()
	if now, err := os.ReadFile(p.path); err != nil || !bytes.Equal(now, p.before) {
		p.t.Errorf("the snapshot was replaced before everything was read (%v)", err)
	}
	p.mu.Lock()
	p.released = true
	p.mu.Unlock()
	p.publisher.Synced()
}

// look is called after each publication: what never changed is in it.
func (p *published) look() {
	p.mu.Lock()
	released := p.released
	p.mu.Unlock()
	if !released {
		p.t.Error("published before everything was read")
	}
	s := p.open()
	for i := range steady {
		a := steadyAddr(i)
		if got := described(s, a); len(got) != 1 || strings.Count(got[0], ":8080") != 6 {
			p.t.Errorf("generation %d has of the steady Service %s: %q", s.Generation(), a, got)
		}
	}
}

func (p *published) open() *table.Snapshot {
	b, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := table.Load(b)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// differs compares the snapshot with one that is compiled of all that the API has.
func (p *published) differs() string {
	objects := resolve.NewObjects()
	objects.Partial = true
	all := make(map[string]metav1.Object)
	for key, o := range p.store.Objects() {
		if w := wanted(key, o); w != nil {
			all[key] = w
		}
	}
	fill(objects, all)
	fresh, err := table.Load(compiled(p.t, objects, 1))
	if err != nil {
		p.t.Fatal(err)
	}
	return cmp.Diff(described(fresh, netip.Addr{}), described(p.open(), netip.Addr{}))
}

func fill(o *resolve.Objects, all map[string]metav1.Object) {
	for _, object := range all {
		n := model.Name{Namespace: object.GetNamespace(), Name: object.GetName()}
		switch v := object.(type) {
		case *corev1.Service:
			o.PutService(n, v)
		case *discoveryv1.EndpointSlice:
			o.PutSlice(n, v)
		case *corev1.Node:
			o.PutNode(n.Name, v)
		}
	}
}

// compiled is the slow and obvious way from objects to a snapshot.
func compiled(t *testing.T, o *resolve.Objects, generation uint64) []byte {
	c := compile.New(nil)
	c.SetSettings(table.DefaultSettings())
	wiring := wired()
	c.SetAttachments(wiring)
	nodes := make(map[netip.Addr]bool)
	for _, n := range o.Nodes {
		for _, a := range resolve.NodeAddresses(n) {
			nodes[a] = true
		}
	}
	c.SetNodes(nodes)
	here, _ := o.Here("n1")
	here.NodePorts = resolve.NodePorts{}.Of(here, &wiring)
	here.Aliases = resolve.Own(&wiring)
	for _, n := range o.Names() {
		if s, _ := o.Resolve(n, here); s != nil {
			c.SetService(s)
		}
	}
	b, _, err := c.Snapshot(generation, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// described is what a snapshot means, without ids: a line for each frontend, of one address
// or of all.
func described(s *table.Snapshot, only netip.Addr) (out []string) {
	list := func(ids []uint32, empty table.Empty) string {
		words := []string{fmt.Sprint(empty)}
		for _, id := range ids {
			b := s.Backend(id)
			words = append(words, fmt.Sprint(netip.AddrPortFrom(b.Addr.Netip(), b.Port), b.Serving))
		}
		sort.Strings(words)
		return strings.Join(words, " ")
	}
	for i := range s.Frontends() {
		f := &s.Frontends()[i]
		if only.IsValid() && f.Addr.Netip() != only {
			continue
		}
		out = append(out, fmt.Sprintf("%s/%d flags %d affinity %d from %v: %s | %s | %s", netip.AddrPortFrom(f.Addr.Netip(), f.Port), f.Protocol, f.Flags, f.Affinity, s.Sources(f),
			list(s.Set(f.Inside), f.Inside.Empty), list(s.Set(f.Outside), f.Outside.Empty), list(s.Keep(f), 0)))
	}
	sort.Strings(out)
	return out
}

// quiet waits for the last publication.
func (p *published) quiet() {
	for range 10 {
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if p.publisher.Queued().IsZero() {
			return
		}
	}
	p.t.Error("nothing was published for 200 ms")
}

func snapshotPath(t *testing.T) string { return filepath.Join(t.TempDir(), "snapshot") }
