package publish_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

// programmed is what becomes of objects: Problems, and lines for what each Service gives at
// each of its addresses, by namespace.
type programmed struct {
	problems []model.Problem
	gives    map[string][]string
}

// program takes objects all the way into tables. The Problems are those that a publisher has.
func program(t *testing.T, all []objects) programmed {
	t.Helper()
	problems, err := publish.Rehearse(t.Context(), publish.Config{Node: "n1", Ranges: serviceRanges}, changesOf(all), nil, wired())
	if err != nil {
		t.Fatal(err)
	}
	return programmed{problems, tablesOf(t, all)}
}

// serviceRanges are those that the ClusterIPs of right Services are in.
var serviceRanges = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}

// changesOf declares the nodes and the objects, as a source does.
func changesOf(all []objects) []source.Change {
	add := func(to []source.Change, k source.Kind, o metav1.Object) []source.Change {
		return append(to, source.Change{Kind: k, Name: model.Name{Namespace: o.GetNamespace(), Name: o.GetName()}, Object: o})
	}
	var out []source.Change
	for _, name := range []string{"n1", "n2"} {
		out = add(out, source.Node, &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, a := range all {
		out = add(out, source.Service, a.service)
		for _, s := range a.slices {
			if s != nil {
				out = add(out, source.EndpointSlice, s)
			}
		}
	}
	return out
}

// tablesOf is what each Service gives, by namespace.
func tablesOf(t *testing.T, all []objects) map[string][]string {
	t.Helper()
	o := resolve.NewObjects()
	o.PutNode("n1", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for _, a := range all {
		o.PutService(model.Name{Namespace: a.service.Namespace, Name: a.service.Name}, a.service)
		for _, s := range a.slices {
			if s != nil {
				o.PutSlice(model.Name{Namespace: s.Namespace, Name: s.Name}, s)
			}
		}
	}
	wiring := wired()
	here, _ := o.Here("n1")
	here.NodePorts = resolve.NodePorts{}.Of(here, &wiring)
	here.Aliases = resolve.Own(&wiring)
	c := compile.New(nil)
	c.SetSettings(table.DefaultSettings())
	c.SetAttachments(wiring)
	var served []*model.Service
	for _, n := range o.Names() {
		if s, _ := o.Resolve(n, here); s != nil {
			served = append(served, s)
			c.SetService(s)
		}
	}
	b, _, err := c.Snapshot(1, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := table.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	return given(tables, served)
}

// given are the lines of the tables by the namespace of the Service that has the frontend.
func given(tables *table.Snapshot, served []*model.Service) map[string][]string {
	owner := map[string]string{}
	for _, s := range served {
		for i := range s.Ports {
			for _, f := range s.Ports[i].Frontends {
				owner[fmt.Sprint(f.Addr, f.Port, uint8(f.Protocol))] = s.Name.Namespace
			}
		}
	}
	out := map[string][]string{}
	for i := range tables.Frontends() {
		f := &tables.Frontends()[i]
		its := owner[fmt.Sprint(f.Addr.Netip(), f.Port, f.Protocol)]
		out[its] = append(out[its], fmt.Sprint(service(f.Addr.Netip(), f.Port, f.Protocol), " ", f.Flags, " ", f.Affinity, " ",
			setText(tables, tables.Set(f.Inside), f.Inside.Empty), " | ", setText(tables, tables.Set(f.Outside), f.Outside.Empty), " | ",
			setText(tables, tables.Keep(f), 0), " ", tables.Sources(f)))
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out
}

// right are all right Services.
func right() (out []objects) {
	for i := range rightServices {
		out = append(out, rightServices[i].decode(i))
	}
	return out
}

// TestRightServicesHaveNoProblem: what the mistakes are made in.
func TestRightServicesHaveNoProblem(t *testing.T) {
	got := program(t, right())
	if len(got.problems) > 0 {
		t.Errorf("%v", got.problems)
	}
	for _, r := range rightServices {
		if n := len(got.gives[r.namespace]); n < 2 || strings.Contains(strings.Join(got.gives[r.namespace], ""), "refuse") {
			t.Errorf("%s gives %d things: %q", r.namespace, n, got.gives[r.namespace])
		}
	}
}

// FuzzOneMistake makes one mistake in one object of Services that are right otherwise, as an
// API server would not allow and a folder may: there is exactly one Problem, which names that
// object, and every other Service gives what it gave, at every address.
func FuzzOneMistake(f *testing.F) {
	made := mistakes()
	for i := range made {
		for service := range rightServices {
			f.Add(uint8(i), uint8(service), []string{"", "10.96.0.13"}[i%2], []int32{0, 1 << 30, -1}[(i+service)%3])
		}
	}
	var before programmed
	f.Fuzz(func(t *testing.T, which, service uint8, text string, number int32) {
		if before.gives == nil {
			before = program(t, right())
		}
		m := made[int(which)%len(made)]
		all := right()
		i := int(service) % len(all)
		if !m.make(&all[i], spoil(text, number)) {
			return
		}
		name := rightServices[i].namespace
		got := program(t, all)
		object := "Service " + name + "/web"
		if m.in > 0 {
			object = fmt.Sprintf("EndpointSlice %s/web-%d", name, m.in)
		}
		if len(got.problems) != 1 || got.problems[0].Kind+" "+got.problems[0].Object != object {
			t.Errorf("%s, in %s: %d Problems, want one of %s:", m.name, name, len(got.problems), object)
			for _, p := range got.problems {
				t.Errorf("  %+v", p)
			}
		}
		for _, other := range rightServices {
			if other.namespace != name && !slices.Equal(before.gives[other.namespace], got.gives[other.namespace]) {
				t.Errorf("%s, in %s, harms %s: it gives %q, and gave %q", m.name, name, other.namespace, got.gives[other.namespace], before.gives[other.namespace])
			}
		}
	})
}
