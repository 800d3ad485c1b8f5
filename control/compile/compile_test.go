package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

func TestSets(t *testing.T) {
	for _, tc := range []struct {
		name      string
		service   *model.Service
		frontends map[string]string
		backends  map[string]string
	}{
		{"ready endpoints are offered", service(t, "web", "10.96.0.10", "10.244.1.5:8080@n1 10.244.2.5:8080@n2"),
			map[string]string{"10.96.0.10:80": "10.244.1.5:8080 10.244.2.5:8080"},
			map[string]string{"10.244.1.5:8080": "serving", "10.244.2.5:8080": "serving"}},
		{"both families stand beside each other", service(t, "web", "10.96.0.10 fd00:10:96::10", "10.244.1.5:8080 [fd00:10:244::5]:8080"),
			map[string]string{"10.96.0.10:80": "10.244.1.5:8080", "fd00:10:96::10:80": "[fd00:10:244::5]:8080"},
			map[string]string{"10.244.1.5:8080": "serving", "[fd00:10:244::5]:8080": "serving"}},
		{"without any endpoint clients are refused", service(t, "web", "10.96.0.10", ""),
			map[string]string{"10.96.0.10:80": "refuse"}, nil},
		{"with none that is usable clients are refused, and flows learn that theirs is gone",
			service(t, "web", "10.96.0.10", "10.244.1.5:8080,down 10.244.1.6:8080,dying"),
			map[string]string{"10.96.0.10:80": "refuse"}, map[string]string{"10.244.1.5:8080": "-", "10.244.1.6:8080": "-"}},
		{"policy Local with endpoints elsewhere only drops", service(t, "web", "10.96.0.10", "10.244.2.5:8080@n2", model.PolicyLocal),
			map[string]string{"10.96.0.10:80": "drop"}, map[string]string{"10.244.2.5:8080": "serving"}},
		{"policy Local without any endpoint refuses", service(t, "web", "10.96.0.10", "10.244.2.5:8080@n2,down", model.PolicyLocal),
			map[string]string{"10.96.0.10:80": "refuse"}, map[string]string{"10.244.2.5:8080": "-"}},
		{"one that is draining keeps its flows though it gets no new ones",
			service(t, "web", "10.96.0.10", "10.244.1.5:8080,draining 10.244.2.5:8080"),
			map[string]string{"10.96.0.10:80": "10.244.2.5:8080"},
			map[string]string{"10.244.1.5:8080": "serving", "10.244.2.5:8080": "serving"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compile.New(nil)
			c.SetService(tc.service)
			s := snapshot(t, c, 1)
			diff(t, "frontends", tc.frontends, frontendsOf(s))
			diff(t, "backends", tc.backends, backendsOf(s))
			for _, f := range s.Frontends() {
				if f.Inside != f.Outside {
					t.Errorf("%v: a ClusterIP offers %+v inside and %+v outside, want the same", &f, f.Inside, f.Outside)
				}
			}
		})
	}
}

func TestDeletedServiceLeavesNothing(t *testing.T) {
	c := compile.New(nil)
	c.SetService(service(t, "web", "10.96.0.10 fd00:10:96::10", "10.244.1.5:8080 [fd00:10:244::5]:8080"))
	snapshot(t, c, 1)
	c.DeleteService(model.Name{Namespace: "demo", Name: "web"})
	c.DeleteService(model.Name{Namespace: "demo", Name: "never-there"})
	s := snapshot(t, c, 2)
	if len(s.Frontends())+len(s.Backends()) != 0 {
		t.Errorf("left behind: %v %v", frontendsOf(s), backendsOf(s))
	}
}

// TestAddressOfTwoServices: the older Service keeps it, the other one gets a Problem,
// and gets the address when the older one goes.
func TestAddressOfTwoServices(t *testing.T) {
	older := service(t, "web", "10.96.0.10", "10.244.1.5:8080")
	younger := service(t, "api", "10.96.0.10 fd00::10", "10.244.2.5:8080 [fd00::5]:80")
	older.Created, younger.Created = time.Unix(100, 0), time.Unix(200, 0)
	for _, order := range [][]*model.Service{{older, younger}, {younger, older}} {
		c := compile.New(nil)
		c.SetService(order[0])
		c.SetService(order[1])
		s, problems := snapshotProblems(t, c, 1)
		diff(t, "frontends", map[string]string{"10.96.0.10:80": "10.244.1.5:8080", "fd00::10:80": "[fd00::5]:80"}, frontendsOf(s))
		diff(t, "problems", []string{"Service demo/api AddressTaken"}, problemsOf(problems))
		if m := problems[0].Message; !strings.Contains(m, "10.96.0.10:80/TCP") || !strings.Contains(m, "demo/web") {
			t.Errorf("message %q: want the address and who has it", m)
		}
		generation := s.Frontends()[0].Generation

		c.DeleteService(older.Name)
		s, problems = snapshotProblems(t, c, 2)
		diff(t, "frontends", map[string]string{"10.96.0.10:80": "10.244.2.5:8080", "fd00::10:80": "[fd00::5]:80"}, frontendsOf(s))
		diff(t, "problems", []string(nil), problemsOf(problems))
		for _, f := range s.Frontends() {
			if f.Addr.Is4() && f.Generation == generation {
				t.Error("the address passed to another Service, and flows of the first cannot tell")
			}
		}
	}
}

func TestServicesOfOneAgeAreOrderedByName(t *testing.T) {
	c := compile.New(nil)
	c.SetService(service(t, "b", "10.96.0.10", "10.244.2.2:1"))
	c.SetService(service(t, "a", "10.96.0.10", "10.244.1.1:1"))
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "frontends", map[string]string{"10.96.0.10:80": "10.244.1.1:1"}, frontendsOf(s))
	diff(t, "problems", []string{"Service demo/b AddressTaken"}, problemsOf(problems))
}

// TestChanged: what the tables do not show is no reason for another snapshot.
func TestChanged(t *testing.T) {
	c := compile.New(nil)
	want := func(step string, want bool) {
		t.Helper()
		if got := c.Changed(); got != want {
			t.Errorf("%s: Changed() = %v, want %v", step, got, want)
		}
	}
	want("before the first snapshot", true)
	snapshot(t, c, 1)
	want("after a snapshot", false)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080"))
	want("a new Service", true)
	snapshot(t, c, 2)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080"))
	want("the same Service once more", false)
	relabelled := service(t, "web", "10.96.0.10", "10.244.1.5:8080")
	relabelled.Type, relabelled.Ports[0].Name = "NodePort", "http"
	c.SetService(relabelled)
	want("another type and name of a port, at the same addresses", false)
	remembered := service(t, "web", "10.96.0.10", "10.244.1.5:8080")
	remembered.Affinity = 60
	c.SetService(remembered)
	want("clients are remembered from now on", true)
	snapshot(t, c, 3)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080"))
	want("and are not any more", true)
	snapshot(t, c, 4)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080,draining"))
	want("the only endpoint drains: it is still all there is", false)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080,down"))
	want("the only endpoint is down", true)
	snapshot(t, c, 5)
	c.SetAttachments(twoPods())
	want("attachments", true)
	snapshot(t, c, 6)
	c.SetAttachments(twoPods())
	want("the same attachments once more", false)
	settings := table.DefaultSettings()
	settings.AnswersPerSecond++
	c.SetSettings(settings)
	want("other settings", true)
	snapshot(t, c, 7)
	unaddressed := service(t, "bare", "10.96.0.11", "10.244.1.7:8080")
	unaddressed.Ports[0].Frontends = nil
	c.SetService(unaddressed)
	want("an endpoint of a Service that has no address", false)
	diff(t, "backends", map[string]string{"10.244.1.5:8080": "-"}, backendsOf(snapshot(t, c, 8)))
}

// TestBadSettings: a snapshot that no reader would take is not made, and the next good
// one holds everything.
func TestBadSettings(t *testing.T) {
	c := compile.New(nil)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080"))
	c.SetSettings(table.Settings{})
	if _, _, err := c.Snapshot(1, created); err == nil {
		t.Fatal("settings without timeouts were encoded")
	}
	if !c.Changed() {
		t.Error("nothing was written, and Changed() says false")
	}
	c.SetSettings(table.DefaultSettings())
	diff(t, "frontends", map[string]string{"10.96.0.10:80": "10.244.1.5:8080"}, frontendsOf(snapshot(t, c, 1)))
}

// TestRoom: when the tables are full the youngest Services are left out and say so; the
// others do not notice, and those left out come in when there is room.
func TestRoom(t *testing.T) {
	for _, tc := range []struct {
		name                string
		frontends, backends int
	}{
		{"frontends", 1000, 1 << 20},
		{"backends", 1 << 17, 2000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compile.New(nil)
			c.Limit(tc.frontends, tc.backends)
			var first *model.Service
			for i := range 1001 {
				s := service(t, fmt.Sprintf("s%04d", i), fmt.Sprintf("10.96.%d.%d", i/250, i%250), fmt.Sprintf("10.1.%d.%d:80 10.2.%d.%d:80", i/250, i%250, i/250, i%250))
				s.Created = time.Unix(int64(i), 0)
				c.SetService(s)
				if i == 0 {
					first = s
				}
			}
			s, problems := snapshotProblems(t, c, 1)
			if len(s.Frontends()) != 1000 || len(s.Backends()) != 2000 {
				t.Errorf("%d frontends and %d backends, want 1000 and 2000", len(s.Frontends()), len(s.Backends()))
			}
			diff(t, "problems", []string{"Service demo/s1000 TableFull"}, problemsOf(problems))
			if _, ok := frontendsOf(s)["10.96.0.0:80"]; !ok {
				t.Error("the oldest Service is not among those that fit")
			}
			c.DeleteService(first.Name)
			s, problems = snapshotProblems(t, c, 2)
			if _, ok := frontendsOf(s)["10.96.4.0:80"]; !ok || len(problems) != 0 {
				t.Errorf("with room again the last Service is there: %v, problems %v", ok, problemsOf(problems))
			}
		})
	}
}

// TestServiceThatFillsTheTablesAlone: of a Service that would not fit into empty tables
// nobody says that others take its room.
func TestServiceThatFillsTheTablesAlone(t *testing.T) {
	c := compile.New(nil)
	c.Limit(10, 2)
	c.SetService(service(t, "big", "10.96.0.1", "10.1.0.1:80 10.1.0.2:80 10.1.0.3:80"))
	c.SetService(service(t, "small", "10.96.0.2", "10.1.0.1:80 10.1.0.2:80"))
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "problems", []string{"Service demo/big TableFull"}, problemsOf(problems))
	if m := problems[0].Message; !strings.Contains(m, "it alone has 1 frontends and 3 backends") || strings.Contains(m, "come before it") {
		t.Errorf("message %q", m)
	}
	if _, there := frontendsOf(s)["10.96.0.2:80"]; !there {
		t.Error("the other Service does not get the room")
	}
}

// TestServicesThatFillTheTablesAlone: each of several is named, with its own numbers.
func TestServicesThatFillTheTablesAlone(t *testing.T) {
	c := compile.New(nil)
	c.Limit(10, 2)
	var want []string
	for i := range 8 {
		name := fmt.Sprintf("big%d", i)
		c.SetService(service(t, name, fmt.Sprintf("10.96.1.%d", i), "10.1.0.1:80 10.1.0.2:80 10.1.0.3:80"))
		want = append(want, "Service demo/"+name+" TableFull")
	}
	_, problems := snapshotProblems(t, c, 1)
	diff(t, "problems", want, problemsOf(problems))
	for _, p := range problems {
		if !strings.Contains(p.Message, "it alone has 1 frontends and 3 backends") {
			t.Errorf("%s: message %q", p.Object, p.Message)
		}
	}
}

// TestNetworkOutOfRange: a Service in a network that no key can hold is left out alone.
func TestNetworkOutOfRange(t *testing.T) {
	odd := service(t, "odd", "10.96.0.9", "10.244.1.5:8080")
	odd.Network = 1 << 22
	c := compile.New(nil)
	c.SetService(odd)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.5:8080"))
	s, problems := snapshotProblems(t, c, 1)
	diff(t, "frontends", map[string]string{"10.96.0.10:80": "10.244.1.5:8080"}, frontendsOf(s))
	diff(t, "problems", []string{"Service demo/odd BadNetwork"}, problemsOf(problems))
}

// TestLargeServiceBesideSmallOnes: one Service of 5,000 endpoints hurts nobody.
func TestLargeServiceBesideSmallOnes(t *testing.T) {
	c := compile.New(nil)
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "10.9.%d.%d:80 ", i>>8, i&255)
	}
	c.SetService(service(t, "large", "10.96.9.9", many.String()))
	for i := range 100 {
		c.SetService(service(t, fmt.Sprint("s", i), fmt.Sprintf("10.96.0.%d", i), fmt.Sprintf("10.244.0.%d:80", i)))
	}
	s, problems := snapshotProblems(t, c, 1)
	got := frontendsOf(s)
	if n := len(strings.Fields(got["10.96.9.9:80"])); n != 5000 || len(problems) > 0 {
		t.Errorf("large Service has %d backends, problems %v; want 5000, none", n, problems)
	}
	for i := range 100 {
		if want, got := fmt.Sprintf("10.244.0.%d:80", i), got[fmt.Sprintf("10.96.0.%d:80", i)]; got != want {
			t.Errorf("small Service %d has %q, want %q", i, got, want)
		}
	}
}
