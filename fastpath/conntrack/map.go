package conntrack

import (
	"errors"
	"fmt"
)

// ErrLayout means that memory is not a flow table of this version and size. It cannot be
// used; a new one has to take its place.
var ErrLayout = errors.New("not a flow table of this layout")

// Report says what Map found.
type Report struct {
	Fresh   bool   // the memory was empty
	Starts  uint32 // how often the memory was opened, this time included
	Flows   int    // flows that go on
	Torn    int    // slots whose writer was killed inside
	Half    int    // directions whose other direction was missing
	Damaged int    // slots that no writer leaves behind
}

// Map makes a table of mem and tags, the pinned and memory-mapped BPF arrays of slots and
// of tag records, and is its only writer from now on. Empty memory gets a header with new keys. Memory with flows is
// gone over: what a killed writer left half done is taken out, everything else goes on,
// undisturbed while the kernel uses it. Memory that is something else is refused with
// ErrLayout and not touched. Tags follow from the slots, so whatever the records hold is
// made what it has to be.
//
// mem and tags must begin at multiples of 8 bytes, should have room for RoundSlots slots
// and a record for each of BucketsIn (a rest is left alone), and stay mapped as long as
// the Table is used. About 100 ns for each flow.
func Map(mem, tags []byte) (*Table, Report, error) {
	slots, records, err := tableOf(mem, tags)
	if err != nil {
		return nil, Report{}, err
	}
	t := newTable(slots, records)
	report := Report{Fresh: t.header().magic.Load() == 0}
	if report.Fresh {
		if err := t.mustBeEmpty(); err != nil {
			return nil, Report{}, err
		}
		t.format()
	} else {
		if err := t.readHeader(); err != nil {
			return nil, Report{}, err
		}
		t.repair(&report)
	}
	report.Starts = t.header().starts.Add(1)
	return t, report, nil
}

// View makes a Reader of mem and tags, for other processes than the writer's. It writes nothing,
// so that the mapping may be read-only. Errors as Map; empty memory is ErrLayout, too.
func View(mem, tags []byte) (*Reader, error) {
	slots, records, err := tableOf(mem, tags)
	if err != nil {
		return nil, err
	}
	r := newReader(slots, records)
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	return &r, nil
}

func newReader(slots []slot, records []record) Reader {
	return Reader{slots: slots, records: records, mask: uint32(len(records) - 1)}
}

// readHeader checks the header and takes the keys.
func (r *Reader) readHeader() error {
	h := r.header()
	m := h.magic.Load()
	switch {
	case m&magicNameMask != magic&magicNameMask:
		return fmt.Errorf("flow table memory begins with %#x: %w: remove the pinned map", m, ErrLayout)
	case m != magic:
		return fmt.Errorf("flow table has layout %d, this program takes %d: %w: remove the pinned map", m>>56, Layout, ErrLayout)
	case h.slotSize.Load() != SlotSize:
		return fmt.Errorf("flow table has slots of %d bytes, not %d: %w: remove the pinned map", h.slotSize.Load(), SlotSize, ErrLayout)
	case int(h.buckets.Load()) != r.Buckets():
		return fmt.Errorf("flow table header says %d buckets, the memory holds %d: %w: remove the pinned map or configure its old size", h.buckets.Load(), r.Buckets(), ErrLayout)
	}
	for i := range r.keys {
		if r.keys[i] = h.keys[i].Load(); r.keys[i] == 0 {
			return fmt.Errorf("flow table hash key %d is zero: %w: remove the pinned map", i, ErrLayout)
		}
	}
	return nil
}

// mustBeEmpty refuses memory that has slots but no header.
func (r *Reader) mustBeEmpty() error {
	for i := range r.slots[1:] {
		s := &r.slots[i+1]
		if s.key.Load() != 0 || s.seq.Load() != 0 || s.marks.Load() != 0 || s.state.Load() != 0 {
			return fmt.Errorf("flow table has no header but slot %d is not empty: %w: remove the pinned map", i+1, ErrLayout)
		}
	}
	return nil
}
