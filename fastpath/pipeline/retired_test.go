package pipeline

import (
	"path/filepath"
	"testing"

	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

// TestRetiredTables: nothing of tables that are not in use any more is looked at, for their
// memory may be gone: a packet that is refused comes after one that was forwarded under
// tables which were closed in between.
func TestRetiredTables(t *testing.T) {
	for _, family := range []int{4, 6} {
		w := newWorld(t, family, 6)
		w.serve("vip", "web:8080")
		w.publish()
		path := filepath.Join(t.TempDir(), "snapshot")
		c := w.contents
		c.Frontends, c.Backends = w.snapshot.Frontends(), w.snapshot.Backends()
		for range 8 { // every set is this backend alone
			c.BackendIDs = append(c.BackendIDs, c.Backends[0].ID)
		}
		b, err := table.Encode(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		if err := table.WriteFile(path, b); err != nil {
			t.Fatal(err)
		}
		old, err := table.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		next := w.snapshot
		w.snapshot = old
		if r := w.send(&step{sends: "client:4000 > vip:80", flags: syn}); r.Reason != reason.NewFlow {
			t.Fatalf("%s, want a new flow", r.Reason)
		}
		w.snapshot = next
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		if r := w.send(&step{sends: "client:4001 > vip:81", flags: syn}); r.Reason != reason.UnknownPort {
			t.Errorf("%s, want that the port is refused", r.Reason)
		}
		if w.pipeline.visit.out != nil && w.pipeline.visit.out != next.Port(w.pipeline.visit.in.ID) {
			t.Error("the answer leaves by a port of the old tables")
		}
	}
}
