package conntrack

import (
	"bytes"
	"errors"
	"testing"
)

// fuzzSlots is the size of the tables that FuzzMap makes: two buckets, so that arbitrary
// slots have a fair chance to be where they belong.
const fuzzSlots = 1 + 2*BucketSlots

// validHeader is a header with the keys 1 to 10, for memory of fuzzSlots.
func validHeader() []byte {
	mem := newMemory(fuzzSlots)
	slots, records, err := tableOf(mem.slots, mem.tags)
	if err != nil {
		panic(err)
	}
	t := newTable(slots, records)
	for i := range t.keys {
		t.keys[i] = uint32(i + 1)
	}
	t.format()
	return mem.slot(0)
}

// FuzzMap opens arbitrary memory: it is refused and not touched, or is a consistent table
// that works. With header, a valid one is put in front. The tags are arbitrary, too.
func FuzzMap(f *testing.F) {
	f.Add([]byte{}, true, []byte{})
	f.Add(bytes.Repeat([]byte{0xff}, fuzzSlots*SlotSize), true, bytes.Repeat([]byte{0xff}, 2*TagSize))
	f.Add(validHeader(), false, []byte{1})
	f.Fuzz(func(t *testing.T, content []byte, header bool, tags []byte) {
		mem := newMemory(fuzzSlots)
		copy(mem.tags, tags)
		if header {
			copy(mem.slots, validHeader())
			copy(mem.slots[SlotSize:], content)
		} else {
			copy(mem.slots, content)
		}
		before := mem.clone()
		view, viewErr := mem.view()
		if viewErr == nil {
			look(t, view)
		}
		table, report, err := mem.open()
		if err != nil {
			if !errors.Is(err, ErrLayout) {
				t.Errorf("error is not ErrLayout: %v", err)
			}
			if !mem.equal(before) {
				t.Error("memory was refused but changed")
			}
			return
		}
		if (viewErr == nil) == report.Fresh {
			t.Errorf("Map says %+v, View says %v", report, viewErr)
		}
		checked(t, table)
		use(t, table)
		checked(t, table)
	})
}

// look reads everything there is to read.
func look(t *testing.T, view *Reader) {
	n := 0
	for f := range view.Range {
		var got, peer Flow
		view.Lookup(&f.Tuple, &got)
		view.Peer(f, &peer)
		n++
	}
	if n > fuzzSlots {
		t.Errorf("%d flows in %d slots", n, fuzzSlots)
	}
}

// use makes, finds and ends flows, as far as there is room.
func use(t *testing.T, table *Table) {
	for i, s := range []service{tcp4, tcp6, udp4, udp6} {
		fwd, rev := s.connect(i, 1000, 1)
		switch r := table.Insert(fwd, rev, 1); r {
		case Full, Clash, HalfOpenFull:
			continue
		case Inserted, Exists:
		default:
			t.Fatalf("Insert is %v", r)
		}
		var got Flow
		if !table.Lookup(&fwd.Tuple, &got) || got != *fwd || !table.Touch(&got, StateACK, 2) {
			t.Fatalf("flow is %+v, want %+v", got, *fwd)
		}
	}
	timeouts := DefaultTimeouts()
	table.Sweep(1<<20, fuzzSlots, &timeouts, func(f *Flow) bool { return f.Backend == 1 })
}
