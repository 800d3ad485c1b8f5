package conntrack

import "testing"

func TestAnswered(t *testing.T) {
	table := newTestTable(t, 8)
	fwd, rev := udp4.connect(1, 1000, 1)
	mustInsert(t, table, fwd, rev, 1)
	if table.Answered(fwd) {
		t.Error("a flow without a reply has an answer")
	}
	if table.Touch(fwd, StateSeen, 2); table.Answered(fwd) {
		t.Error("what the client sends is taken for an answer")
	}
	if table.Touch(rev, StateSeen, 2); !table.Answered(fwd) {
		t.Error("a flow with a reply has no answer")
	}
	stale := *fwd
	table.Delete(fwd)
	again, reply := udp4.connect(1, 1000, 2)
	mustInsert(t, table, again, reply, 3)
	table.Touch(reply, StateSeen, 4)
	if again.slot != stale.slot {
		t.Fatalf("the flow lives in slot %d, not in the old one's %d: the test would prove nothing", again.slot, stale.slot)
	}
	if table.Answered(&stale) || table.Answered(&Flow{}) {
		t.Error("a copy of a flow that is gone has the answer of another")
	}
}
