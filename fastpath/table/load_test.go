package table_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/table"
)

func TestLoadRefuses(t *testing.T) {
	slot := func(section int) func([]byte) {
		return func(b []byte) { table.Put32(b, table.SectionOffset(b, section), 1<<31) }
	}
	for _, c := range []struct {
		name   string
		damage func([]byte) []byte
		is     error
		want   string
	}{
		{"nothing", func(b []byte) []byte { return nil }, table.ErrDamaged, "does not begin with"},
		{"another kind of file", func(b []byte) []byte { b[0] = 'X'; return b }, table.ErrDamaged, "does not begin with"},
		{"a file cut inside the header", func(b []byte) []byte { return b[:100] }, table.ErrDamaged, "shorter than its header"},
		{"a file cut short", func(b []byte) []byte { return b[:len(b)-1] }, table.ErrDamaged, "its header says"},
		{"a file with something behind it", func(b []byte) []byte { return append(b, 0) }, table.ErrDamaged, "its header says"},
		{"a later layout", func(b []byte) []byte { table.Put32(b, table.OffsetLayout, 3); return b }, table.ErrLayout, "layout 3, this program takes 2"},
		{"a wrong checksum", func(b []byte) []byte { b[table.OffsetCRC] ^= 1; return b }, table.ErrDamaged, "checksum"},
		{"a frontend count that is not the layout's", sealed(func(b []byte) { table.SetCount(b, table.SectionFrontends, 9) }), table.ErrDamaged, "do not add up"},
		{"a count that overflows", sealed(func(b []byte) { table.SetCount(b, table.SectionBackends, 1<<32-1) }), table.ErrDamaged, "do not add up"},
		{"a port index that names no port", sealed(func(b []byte) { b[table.SectionOffset(b, table.SectionPortIndex)+2] = 200 }), table.ErrDamaged, "port index: entry 1"},
		{"a port index that lacks a port", sealed(func(b []byte) { b[table.SectionOffset(b, table.SectionPortIndex)+2] = 0 }), table.ErrDamaged, "port index: 3 entries for 4 ports"},
		{"a frontend slot past the records", sealed(slot(table.SectionFrontendIndex)), table.ErrDamaged, "frontend index: slot 0 names record"},
		{"a frontend id slot past the records", sealed(slot(table.SectionFrontendIDs)), table.ErrDamaged, "frontend id index: slot 0 names record"},
		{"a VIP slot past the records", sealed(slot(table.SectionVIPs)), table.ErrDamaged, "VIP index: slot 0 names record"},
		{"a backend slot past the records", sealed(slot(table.SectionBackendIndex)), table.ErrDamaged, "backend index: slot 0 names record"},
		{"an address slot past the records", sealed(slot(table.SectionAddressIndex)), table.ErrDamaged, "address index: slot 0 names record"},
		{"an index without empty slot, in which a probe would not end", sealed(fillSlotsOf(8, table.SectionBackendIndex)), table.ErrDamaged, "backend index: 8 slots used by 3 records"},
		{"a VIP index without empty slot", sealed(fillSlotsOf(16, table.SectionVIPs)), table.ErrDamaged, "VIP index: 16 slots used by 7 records"},
		{"a VIP index with an entry that no lookup meets", sealed(spareSlot(table.SectionVIPs, 2)), table.ErrDamaged, "VIP index: 6 slots used by 5 addresses"},
		{"an index with everything gone", sealed(clearSlots(table.SectionAddressIndex)), table.ErrDamaged, "address index: 0 slots used by 5 records"},
		{"a VIP index with everything gone", sealed(clearSlots(table.SectionVIPs)), table.ErrDamaged, "VIP index: 10.96.0.10 in network 0 is not found"},
		{"spans that are not those of the routes", sealed(func(b []byte) { b[table.SectionOffset(b, table.SectionSpans)+15] ^= 1 }), table.ErrDamaged, "spans are not those of the routes"},
		{"a record out of range", sealed(func(b []byte) { b[table.SectionOffset(b, table.SectionBackends)+29] = 2 }), table.ErrDamaged, "serving is 2"},
		{"a VIP index that leads to a frontend which has its address in part only", sealed(spareSlot(table.SectionVIPs, 5)), table.ErrDamaged, "VIP index: 6 slots used by 5 addresses"},
		{"a source range whose last address comes before its first", sealed(func(b []byte) { b[table.SectionOffset(b, table.SectionRanges)] = 0xff }), table.ErrDamaged, "source range at position 0"},
		{"a set of a backend that is not there", sealed(func(b []byte) { table.Put32(b, table.SectionOffset(b, table.SectionBackendIDs), 77) }), table.ErrDamaged, "backend id 77 at position 0"},
	} {
		b := c.damage(encode(t, small()))
		s, err := table.Load(b)
		if s != nil || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %v with %q", c.name, err, c.is, c.want)
		}
	}
}

// sealed damages the contents and makes size and checksum right again.
func sealed(damage func([]byte)) func([]byte) []byte {
	return func(b []byte) []byte {
		damage(b)
		table.Seal(b)
		return b
	}
}

// fillSlotsOf lets every slot of an index of n name the first record.
func fillSlotsOf(n, section int) func([]byte) {
	return func(b []byte) {
		for i := range n {
			table.Put32(b, table.SectionOffset(b, section)+4*i, 1)
		}
	}
}

// spareSlot puts a record into an empty slot of an index of 16.
func spareSlot(section int, slot uint32) func([]byte) {
	return func(b []byte) {
		for i := range 16 {
			if at := table.SectionOffset(b, section) + 4*i; binary.LittleEndian.Uint32(b[at:]) == 0 {
				table.Put32(b, at, slot)
				return
			}
		}
	}
}

func clearSlots(section int) func([]byte) {
	return func(b []byte) {
		from, end := table.SectionOffset(b, section), table.SectionOffset(b, section+1)
		clear(b[from:end])
	}
}

// TestEveryFlippedBitIsFound flips each bit of a file: the checksum must tell.
func TestEveryFlippedBitIsFound(t *testing.T) {
	b := encode(t, small())
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if s, err := table.Load(b); err == nil {
				t.Errorf("bit %d of byte %d: taken, generation %d", bit, i, s.Generation())
			}
			b[i] ^= 1 << bit
		}
	}
	if _, err := table.Load(b); err != nil {
		t.Errorf("after all bits were put back: %v", err)
	}
}

// TestEveryByteUnderAValidChecksum changes each byte and makes the checksum right
// again: what is then taken must still keep every promise.
func TestEveryByteUnderAValidChecksum(t *testing.T) {
	good := encode(t, small())
	taken := 0
	for i := range good {
		for _, x := range []byte{1, 0x80, 0xff} {
			b := append([]byte(nil), good...)
			b[i] ^= x
			if !table.Seal(b) {
				t.Fatal("cannot be sealed")
			}
			s, err := table.Load(b)
			if err != nil {
				continue
			}
			taken++
			if err := walk(s); err != nil {
				t.Errorf("byte %d changed by %#x: %v", i, x, err)
			}
		}
	}
	if taken == 0 {
		t.Error("no change was taken, not even that of a timeout; the test proves nothing")
	}
}

func TestLoadFromUnalignedMemory(t *testing.T) {
	b := encode(t, small())
	s, err := table.Load(append(make([]byte, 1, len(b)+1), b...)[1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := walk(s); err != nil {
		t.Error(err)
	}
}

var update = flag.Bool("update", false, "write the golden file anew, for a new layout")

// TestLayoutIsKept loads a file that an earlier build wrote. When it fails, the layout
// has changed: raise Layout, and write the file anew with -update under its new name.
func TestLayoutIsKept(t *testing.T) {
	const golden = "testdata/layout2.snapshot"
	if *update {
		if err := os.WriteFile(golden, encode(t, small()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*small(), s.Contents()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := walk(s); err != nil {
		t.Error(err)
	}
}
