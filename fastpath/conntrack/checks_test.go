package conntrack

import "testing"

// Flows that are answered do not crowd out one that waits for its answer, also behind a
// flood.
func TestAnsweredFlowsCrowdNobodyOut(t *testing.T) {
	for name, c := range map[string]struct {
		s     service
		queue func(*Table) *queue
	}{
		"half-open connections": {tcp4, func(t *Table) *queue { return &t.half }},
		"unanswered datagrams":  {udp4, func(t *Table) *queue { return &t.unanswered }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newShareRun(t, 1<<12)
			q := c.queue(r.table)
			tick := func(i int) {
				if i%100 == 0 {
					r.now++
				}
			}
			for i := range 3 * q.max() {
				r.open(c.s, 4)
				tick(i)
			}
			waiting, _, result := r.open(c.s, 4)
			if result != Inserted {
				t.Fatal(result)
			}
			var open []*Flow
			for i := range 8 * q.max() {
				f, result := r.confirm(c.s, 4)
				if result != Inserted {
					t.Fatalf("flow %d: %v", i, result)
				}
				if open = append(open, f); len(open) > 50 {
					r.table.Delete(open[0])
					open = open[1:]
				}
				tick(i)
			}
			if !r.table.Lookup(&waiting.Tuple, new(Flow)) {
				t.Error("the flow that waits for its answer is gone")
			}
			checked(t, r.table)
		})
	}
}
