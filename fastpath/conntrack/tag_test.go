package conntrack

import (
	"math/rand/v2"
	"testing"
)

func TestTagOf(t *testing.T) {
	for _, c := range []struct {
		because string
		hash    uint64
		want    uint8
	}{
		{"the tag is the highest byte", 0xab00000000000000, 0xab},
		{"what chooses buckets does not matter", 0xabffffffffffffff, 0xab},
		{"0 means free and is no tag", 0x00ffffffffffffff, 1},
		{"it shares its tag with the next", 0x01ffffffffffffff, 1},
	} {
		if got := tagOf(c.hash); got != c.want {
			t.Errorf("%s: tag of %#x is %d, want %d", c.because, c.hash, got, c.want)
		}
	}
}

// All eight bytes are compared at once, and none speaks for its neighbour.
func TestEquals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var tags, want uint64
		tag := uint8(r.Uint32())
		for i := range 8 {
			b := [...]uint8{0, 1, 0x7f, 0x80, 0xff, tag, tag + 1, tag ^ 0x80}[r.IntN(8)]
			tags |= uint64(b) << (8 * i)
			if b == tag {
				want |= 0x80 << (8 * i)
			}
		}
		if got := equals(tags, tag); got != want {
			t.Fatalf("%#x among %#x: %#x, want %#x", tag, tags, got, want)
		}
	}
}

// colliding makes flows whose forward tuples all have one tag, in a table of one bucket.
func colliding(t *testing.T, table *Table, n int) (all []*Flow) {
	t.Helper()
	first, _ := udp4.connect(0, 1000, 1)
	tag := homesOfTuple(table, &first.Tuple).tag
	for i := 0; len(all) < n; i++ {
		fwd, rev := udp4.connect(i, 1000, 1)
		if homesOfTuple(table, &fwd.Tuple).tag != tag {
			continue
		}
		mustInsert(t, table, fwd, rev, 1)
		all = append(all, fwd)
	}
	return all
}

// Tuples with one tag in one bucket are told apart by what their slots hold.
func TestTagsCollide(t *testing.T) {
	table := newTestTable(t, BucketSlots)
	all := colliding(t, table, 4)
	for gone := range all {
		for i, want := range all {
			var got Flow
			if found := table.Lookup(&want.Tuple, &got); found != (i >= gone) || found && got != *want {
				t.Fatalf("with %d of them deleted flow %d is there: %v, %+v", gone, i, found, got)
			}
		}
		if !table.Delete(all[gone]) {
			t.Fatalf("flow %d is gone already", gone)
		}
		checked(t, table)
	}
}

// A reader may see a tag whose slot was emptied or given to another flow since.
func TestStaleTag(t *testing.T) {
	absent, _ := tcp4.connect(1, 1000, 1)
	for _, c := range []struct {
		because string
		leave   func(t *testing.T, table *Table, slot uint32)
	}{
		{"its slot is free", func(*testing.T, *Table, uint32) {}},
		{"its slot is being written", func(t *testing.T, table *Table, slot uint32) { table.slots[slot].open() }},
		{"its slot holds another flow", func(t *testing.T, table *Table, slot uint32) {
			fwd, rev := udp6.connect(1, 1000, 1)
			mustInsert(t, table, fwd, rev, 1)
			if fwd.slot != slot {
				t.Fatalf("the flow is in slot %d, not in %d", fwd.slot, slot)
			}
		}},
	} {
		table := newTestTable(t, BucketSlots)
		c.leave(t, table, 1)
		table.setTag(1, homesOfTuple(table, &absent.Tuple).tag)
		var got Flow
		if table.Lookup(&absent.Tuple, &got) {
			t.Errorf("%s: found %+v", c.because, got)
		}
		n := 0
		for range table.Range {
			n++
		}
		if n != table.Len() {
			t.Errorf("%s: %d flows are seen, %d are there", c.because, n, table.Len())
		}
	}
}

// What is not there costs no look at a slot: here is none to look at.
func TestMissReadsNoSlot(t *testing.T) {
	table := newTestTable(t, 1<<12)
	for i := range 64 {
		fwd, rev := udp4.connect(i, 1000, 1)
		mustInsert(t, table, fwd, rev, 1)
	}
	blind := table.Reader
	blind.slots = nil
	misses := 0
	for i := range 1000 {
		fwd, _ := tcp4.connect(i, 1000, 1)
		h := homesOfTuple(table, &fwd.Tuple)
		if equals(table.records[h.near].tags.Load(), h.tag) != 0 || table.spill(h.near) != 0 {
			continue
		}
		var got Flow
		if blind.Lookup(&fwd.Tuple, &got) {
			t.Fatalf("found %+v", got)
		}
		misses++
	}
	if misses < 900 {
		t.Errorf("%d of 1000 misses end at the record: want nearly all", misses)
	}
}

// Whatever the records hold, they are what the slots say after the table was opened again.
func TestMapRebuildsTags(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for because, damage := range map[string]func(m memory){
		"empty records, of a map made afresh": func(m memory) { clear(m.tags) },
		"the records of something else":       func(m memory) { m.scramble(r) },
	} {
		s := newScene(t)
		fwd, _ := tcp4.connect(1, 1000, 1)
		s.crowd(&fwd.Tuple)
		damage(s.mem)
		if s.table.verify() == nil {
			t.Fatalf("%s: the table is as it was; the test would prove nothing", because)
		}
		s.expect(s.mem, 0, &fwd.Tuple)
	}
}

func TestMapRefusesTags(t *testing.T) {
	for because, cut := range map[string]func(tags []byte) []byte{
		"no records at all":                      func([]byte) []byte { return nil },
		"one record less than there are buckets": func(tags []byte) []byte { return tags[:len(tags)-1] },
		"records that begin at an odd address":   func(tags []byte) []byte { return append(make([]byte, 1, 1<<12), tags...)[1:] },
	} {
		s := newScene(t)
		before := s.mem.clone()
		tags := cut(s.mem.tags)
		if _, _, err := Map(s.mem.slots, tags); err == nil {
			t.Errorf("%s: made a table", because)
		}
		if _, err := View(s.mem.slots, tags); err == nil {
			t.Errorf("%s: View takes them", because)
		}
		if !s.mem.equal(before) {
			t.Errorf("%s: memory was changed", because)
		}
	}
}
