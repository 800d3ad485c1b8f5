package compile_test

import (
	"fmt"
	"testing"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// identity is what a flow is stamped with.
type identity struct {
	id         uint32
	generation uint16
}

func backendIdentity(t *testing.T, s *table.Snapshot, addr string) identity {
	t.Helper()
	for _, b := range s.Backends() {
		if b.Addr.String() == addr {
			return identity{b.ID, b.Generation}
		}
	}
	return identity{}
}

func frontendIdentity(t *testing.T, s *table.Snapshot, addr string) identity {
	t.Helper()
	for _, f := range s.Frontends() {
		if f.Addr.String() == addr {
			return identity{f.ID, f.Generation}
		}
	}
	return identity{}
}

// TestBackendGenerations: only what stops or resumes serving gets another generation.
func TestBackendGenerations(t *testing.T) {
	c := compile.New(nil)
	generation := uint64(0)
	step := func(eps string) (one, two identity) {
		t.Helper()
		generation++
		c.SetService(service(t, "web", "10.96.0.10", eps))
		s := snapshot(t, c, generation)
		return backendIdentity(t, s, "10.244.1.1"), backendIdentity(t, s, "10.244.1.2")
	}
	one, two := step("10.244.1.1:80 10.244.1.2:80")
	check := func(what string, wantChange bool, eps string) {
		t.Helper()
		a, b := step(eps)
		if a != one {
			t.Errorf("%s: the other backend changed from %v to %v", what, one, a)
		}
		if b.id != two.id || (b.generation != two.generation) != wantChange {
			t.Errorf("%s: from %v to %v; want the same id, changed generation: %v", what, two, b, wantChange)
		}
		two = b
	}
	check("nothing changed", false, "10.244.1.1:80 10.244.1.2:80")
	check("it drains but serves", false, "10.244.1.1:80 10.244.1.2:80,draining")
	check("it stops serving", true, "10.244.1.1:80 10.244.1.2:80,dying")
	check("it is down still", false, "10.244.1.1:80 10.244.1.2:80,down")
	check("it resumes", true, "10.244.1.1:80 10.244.1.2:80")

	_, gone := step("10.244.1.1:80")
	if gone != (identity{}) {
		t.Errorf("a removed endpoint is still there: %v", gone)
	}
	_, back := step("10.244.1.1:80 10.244.1.2:80")
	if back == two || back.id == 0 {
		t.Errorf("an endpoint that was gone comes back as %v, as if it had not been away", back)
	}
}

// TestBackendOfTwoServices: it serves as long as one of them says so.
func TestBackendOfTwoServices(t *testing.T) {
	c := compile.New(nil)
	c.SetService(service(t, "a", "10.96.0.1", "10.244.1.1:80"))
	c.SetService(service(t, "b", "10.96.0.2", "10.244.1.1:80,down"))
	s := snapshot(t, c, 1)
	before, fa, fb := backendIdentity(t, s, "10.244.1.1"), frontendIdentity(t, s, "10.96.0.1"), frontendIdentity(t, s, "10.96.0.2")
	diff(t, "backends", map[string]string{"10.244.1.1:80": "serving"}, backendsOf(s))
	diff(t, "frontends", map[string]string{"10.96.0.1:80": "10.244.1.1:80", "10.96.0.2:80": "refuse"}, frontendsOf(s))

	c.SetService(service(t, "b", "10.96.0.2", "10.244.1.1:80"))
	snapshot(t, c, 2)
	c.SetService(service(t, "a", "10.96.0.1", ""))
	s = snapshot(t, c, 3)
	after := backendIdentity(t, s, "10.244.1.1")
	if after.id != before.id || after.generation == before.generation {
		t.Errorf("the backend left a, serves on for b, and went from %v to %v: flows of a cannot tell", before, after)
	}
	if got := frontendIdentity(t, s, "10.96.0.1"); got != fa {
		t.Errorf("a, which one backend left, went from %v to %v: flows to its other backends are disturbed", fa, got)
	}
	if got := frontendIdentity(t, s, "10.96.0.2"); got != fb {
		t.Errorf("b, which nothing left, went from %v to %v", fb, got)
	}
	if got := backendIdentity(t, snapshot(t, c, 4), "10.244.1.1"); got != after {
		t.Errorf("the backend changed from %v to %v with a snapshot in which nothing happened", after, got)
	}
}

// TestBackendLeavesSeveralServices: it leaves two and takes one generation; when it stops
// serving in one Service and leaves another at once, that is one generation, too.
func TestBackendLeavesSeveralServices(t *testing.T) {
	c := compile.New(nil)
	const here = "10.244.1.1:80"
	for name, vip := range map[string]string{"a": "10.96.0.1", "b": "10.96.0.2", "c": "10.96.0.3"} {
		c.SetService(service(t, name, vip, here))
	}
	before := backendIdentity(t, snapshot(t, c, 1), "10.244.1.1")
	c.SetService(service(t, "a", "10.96.0.1", ""))
	c.SetService(service(t, "b", "10.96.0.2", here+",down"))
	after := backendIdentity(t, snapshot(t, c, 2), "10.244.1.1")
	if want := (identity{before.id, 2}); after != want {
		t.Errorf("from %v to %v, want %v: the generation of the snapshot", before, after, want)
	}
}

// TestFrontendGenerations: a frontend stays what it is while its Service lives.
func TestFrontendGenerations(t *testing.T) {
	web := func(uid, eps string, policy model.Policy) *model.Service {
		s := service(t, "web", "10.96.0.10", eps, policy)
		s.UID = uid
		return s
	}
	c := compile.New(nil)
	c.SetService(web("u1", "10.244.1.1:80@n1", model.PolicyCluster))
	was := frontendIdentity(t, snapshot(t, c, 1), "10.96.0.10")
	for i, tc := range []struct {
		name    string
		edit    func()
		changes bool
	}{
		{"endpoints come", func() { c.SetService(web("u1", "10.244.1.1:80@n1 10.244.1.2:80@n2", 0)) }, false},
		{"endpoints go", func() { c.SetService(web("u1", "10.244.1.2:80@n2", 0)) }, false},
		{"policy changes", func() { c.SetService(web("u1", "10.244.1.2:80@n2", model.PolicyLocal)) }, false},
		{"another Service of the same name", func() { c.SetService(web("u2", "10.244.1.2:80@n2", model.PolicyLocal)) }, true},
		{"deleted and set again in one go", func() {
			c.DeleteService(model.Name{Namespace: "demo", Name: "web"})
			c.SetService(web("u2", "10.244.1.2:80@n2", model.PolicyLocal))
		}, false},
	} {
		tc.edit()
		now := frontendIdentity(t, snapshot(t, c, uint64(i)+2), "10.96.0.10")
		if now.id != was.id || (now.generation != was.generation) != tc.changes {
			t.Errorf("%s: from %v to %v; want the same id, changed generation: %v", tc.name, was, now, tc.changes)
		}
		was = now
	}
	c.DeleteService(model.Name{Namespace: "demo", Name: "web"})
	snapshot(t, c, 50)
	c.SetService(web("u2", "10.244.1.2:80@n2", model.PolicyLocal))
	if now := frontendIdentity(t, snapshot(t, c, 51), "10.96.0.10"); now == was {
		t.Errorf("re-created after a snapshot without it, and still %v", now)
	}
}

// TestIdentitiesAreNotReused: whatever comes and goes, no id and generation together
// ever mean two things; over restarts too.
func TestIdentitiesAreNotReused(t *testing.T) {
	c := compile.New(nil)
	seen := map[identity]string{}
	generation := uint64(1)
	for i := range 3 * compile.Quarantine {
		addr := fmt.Sprintf("10.1.%d.%d", i/250, i%250)
		c.SetService(service(t, "web", "10.96.0.10", addr+":80"))
		s := snapshot(t, c, generation)
		id := backendIdentity(t, s, addr)
		if other, used := seen[id]; used {
			t.Fatalf("step %d: %v means %s and meant %s", i, id, addr, other)
		}
		seen[id] = addr
		if i%1000 == 999 {
			c = compile.New(s)
		}
		generation++
	}
	var largest uint32
	for id := range seen {
		largest = max(largest, id.id)
	}
	if limit := uint32(compile.Quarantine + 10); largest > limit {
		t.Errorf("one backend at a time needed ids up to %d, want at most %d", largest, limit)
	}
}

// TestRestart: a new Compiler goes on from the file as if it had always been there.
func TestRestart(t *testing.T) {
	services := []*model.Service{
		service(t, "a", "10.96.0.1 fd00::1", "10.244.1.1:80 10.244.1.2:80,draining [fd00:1::1]:80"),
		service(t, "b", "10.96.0.2", "10.244.1.2:80 10.244.1.3:80,down"),
		service(t, "c", "10.96.0.3", ""),
	}
	c := compile.New(nil)
	for _, s := range services {
		c.SetService(s)
	}
	c.SetAttachments(twoPods())
	c.SetService(service(t, "d", "10.96.0.4", "10.244.9.9:80"))
	snapshot(t, c, 6)
	c.DeleteService(model.Name{Namespace: "demo", Name: "d"}) // leaves a gap in the ids
	last := snapshot(t, c, 7)

	c = compile.New(last)
	for _, i := range []int{2, 0, 1} {
		c.SetService(services[i])
	}
	c.SetAttachments(twoPods())
	next := snapshot(t, c, 8)
	diff(t, "tables after a restart", tables(last), tables(next))
}

// TestRestartWithLess: what nobody declares any more is gone with the first snapshot.
func TestRestartWithLess(t *testing.T) {
	c := compile.New(nil)
	c.SetService(service(t, "a", "10.96.0.1", "10.244.1.1:80"))
	c.SetService(service(t, "b", "10.96.0.2", "10.244.1.2:80"))
	c.SetAttachments(twoPods())
	c = compile.New(snapshot(t, c, 1))
	c.SetService(service(t, "b", "10.96.0.2", "10.244.1.2:80"))
	s := snapshot(t, c, 2)
	diff(t, "frontends", map[string]string{"10.96.0.2:80": "10.244.1.2:80"}, frontendsOf(s))
	diff(t, "backends", map[string]string{"10.244.1.2:80": "serving"}, backendsOf(s))
	if n := len(s.Ports()); n != 0 {
		t.Errorf("%d ports that nobody set", n)
	}
}

// TestForeignIDs: ids that no Compiler gives out do not make its tables grow.
func TestForeignIDs(t *testing.T) {
	b, err := table.Encode(nil, &table.Contents{
		Generation: 9, Settings: table.DefaultSettings(),
		Frontends:  []table.Frontend{{ID: 1<<32 - 1, Addr: packet.Addr4([4]byte{10, 96, 0, 10}), Port: 80, Protocol: 6, Generation: 5, Inside: table.Set{Count: 1}, Outside: table.Set{Count: 1}}},
		Backends:   []table.Backend{{ID: 1<<32 - 2, Addr: packet.Addr4([4]byte{10, 244, 1, 1}), Port: 80, Protocol: 6, Serving: 1}},
		BackendIDs: []uint32{1<<32 - 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	last, err := table.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	c := compile.New(last)
	c.SetService(service(t, "web", "10.96.0.10", "10.244.1.1:80"))
	s := snapshot(t, c, 10)
	if f := frontendIdentity(t, s, "10.96.0.10"); f.id == 0 || f.id > 10 || f.generation == 5 {
		t.Errorf("frontend is %v, want a small id and a new generation", f)
	}
}

// tables is everything in a snapshot but its number, in a form that cmp can show.
func tables(s *table.Snapshot) table.Contents {
	c := s.Contents()
	c.Generation, c.Created = 0, 0
	return c
}
