package conntrack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// scene is a table in memory with flows that no operation of the test concerns.
type scene struct {
	*testing.T
	mem        memory
	table      *Table
	bystanders []*Flow // forward directions
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, mem: newMemory(RoundSlots(128))}
	var err error
	if s.table, _, err = s.mem.open(); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		fwd, rev := []service{tcp4, udp6}[i%2].connect(i, 2000, 200)
		mustInsert(t, s.table, fwd, rev, uint32(i))
		s.bystanders = append(s.bystanders, fwd)
	}
	return s
}

// crowd fills the near and the first home of a tuple with bystanders, so that its flow has
// to live in the second.
func (s *scene) crowd(tuple *Tuple) {
	s.Helper()
	h := homesOfTuple(s.table, tuple)
	for i := 0; ; i++ {
		_, near := s.table.vacancy(h.near, 0)
		_, first := s.table.vacancy(h.first, 0)
		if near <= crowded && first <= crowded {
			return
		}
		fwd, rev := udp4.connect(1000+i, 2000, 200)
		there, back := homesOfTuple(s.table, &fwd.Tuple), homesOfTuple(s.table, &rev.Tuple)
		if there.near != h.near || near <= crowded && there.first != h.first || slices.Contains([]uint32{back.near, back.first}, h.second) {
			continue
		}
		mustInsert(s.T, s.table, fwd, rev, 1)
		s.bystanders = append(s.bystanders, fwd)
	}
}

// interruptions calls try with the memory as a kill at any store of do could leave it,
// and with more than that: every slot that do changes is as before, as after, or open
// with any part of its words stored, in every combination. The tags are as before, as
// after, or mean nothing.
func (s *scene) interruptions(do func(), try func(mem memory, torn int)) {
	before := s.mem.clone()
	do()
	after := s.mem.clone()
	var changed []uint32
	for n := uint32(1); int(n) < len(s.table.slots); n++ {
		if !bytes.Equal(before.slot(n), after.slot(n)) {
			changed = append(changed, n)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	mem := before.clone()
	var combine func(i, torn int)
	combine = func(i, torn int) {
		if i == len(changed) {
			for _, tags := range [][]byte{before.tags, after.tags, nil} {
				left := mem.clone()
				if copy(left.tags, tags) == 0 {
					left.scramble(random)
				}
				try(left, torn)
			}
			return
		}
		n := changed[i]
		for _, stage := range stages(before.slot(n), after.slot(n)) {
			copy(mem.slot(n), stage)
			combine(i+1, torn+int(stage[0]&1))
		}
	}
	combine(0, 0)
}

// stages are the states of one slot from before to after.
func stages(before, after []byte) [][]byte {
	all := [][]byte{before, after}
	odd := binary.LittleEndian.AppendUint32(nil, binary.LittleEndian.Uint32(before)+1)
	torn := func(stored func(word int) bool) {
		slot := bytes.Clone(before)
		copy(slot, odd)
		for w := 1; w < SlotSize/4; w++ {
			if stored(w) {
				copy(slot[4*w:], after[4*w:4*w+4])
			}
		}
		all = append(all, slot)
	}
	torn(func(int) bool { return false })
	torn(func(int) bool { return true })
	torn(func(int) bool { return rand.IntN(2) == 0 })
	cut := rand.IntN(SlotSize / 4)
	torn(func(w int) bool { return w < cut })
	torn(func(w int) bool { return w >= cut })
	return all
}

// outcome is what became of a forward tuple.
type outcome struct{ old, new, absent int }

// expect opens mem as a restarted process would, checks the table and the bystanders, and
// returns the flow with that tuple.
func (s *scene) expect(mem memory, torn int, tuple *Tuple) (f Flow, found bool) {
	s.Helper()
	table, report, err := mem.open()
	if err != nil {
		s.Fatal(err)
	}
	if report.Torn != torn || report.Damaged != 0 || report.Flows != table.Len() {
		s.Fatalf("report is %+v, want %d torn slots, none damaged, %d flows", report, torn, table.Len())
	}
	checked(s.T, table)
	for _, want := range s.bystanders {
		var got Flow
		if !table.Lookup(&want.Tuple, &got) || got != *want {
			s.Fatalf("bystander is %+v, want %+v", got, *want)
		}
	}
	found = table.Lookup(tuple, &f)
	return f, found
}

func TestInterruptedInsert(t *testing.T) {
	for _, c := range []service{tcp4, udp6} {
		s := newScene(t)
		fwd, rev := c.connect(1, 1000, 1)
		if c.v6 {
			s.crowd(&fwd.Tuple)
		}
		var seen outcome
		s.interruptions(
			func() { mustInsert(t, s.table, fwd, rev, 9) },
			func(mem memory, torn int) {
				f, found := s.expect(mem, torn, &fwd.Tuple)
				if !found {
					seen.absent++
				} else if seen.new++; f != *fwd || torn != 0 {
					t.Fatalf("half a flow is there: %+v", f)
				}
			})
		if seen.new == 0 || seen.absent == 0 {
			t.Errorf("outcomes are %+v, want both", seen)
		}
	}
}

func TestInterruptedDelete(t *testing.T) {
	for _, c := range []service{tcp6, udp4} {
		s := newScene(t)
		fwd, rev := c.connect(1, 1000, 1)
		if c.v6 {
			s.crowd(&rev.Tuple)
		}
		mustInsert(t, s.table, fwd, rev, 9)
		var seen outcome
		s.interruptions(
			func() { s.table.Delete(fwd) },
			func(mem memory, torn int) {
				f, found := s.expect(mem, torn, &fwd.Tuple)
				if !found {
					seen.absent++
				} else if seen.old++; f != *fwd || torn != 0 {
					t.Fatalf("half a flow is there: %+v", f)
				}
			})
		if seen.old == 0 || seen.absent == 0 {
			t.Errorf("outcomes are %+v, want both", seen)
		}
	}
}

// The flow is the old one, the new one, or none: never one direction of each.
func TestInterruptedReplace(t *testing.T) {
	for _, c := range []service{tcp6, udp4} {
		s := newScene(t)
		old, oldRev := c.connect(1, 1000, 1)
		mustInsert(t, s.table, old, oldRev, 9)
		fwd, rev := c.connect(1, 1000, 2)
		if c.v6 {
			s.crowd(&rev.Tuple)
		}
		replaced := *old
		var seen outcome
		s.interruptions(
			func() {
				if r := s.table.Replace(&replaced, fwd, rev, 10); r != Inserted {
					t.Fatalf("Replace is %v", r)
				}
			},
			func(mem memory, torn int) {
				f, found := s.expect(mem, torn, &old.Tuple)
				switch {
				case !found:
					seen.absent++
				case f == *old:
					seen.old++
				case f == *fwd:
					seen.new++
				default:
					t.Fatalf("flow is neither old nor new: %+v", f)
				}
			})
		if seen.old == 0 || seen.new == 0 || seen.absent == 0 {
			t.Errorf("outcomes are %+v, want all three", seen)
		}
	}
}

func TestRepairDamage(t *testing.T) {
	for _, c := range []struct {
		because string
		damage  func(s *scene, slot []byte, f *Flow)
		damaged int
	}{
		{"a key without its used bit", func(s *scene, slot []byte, f *Flow) { slot[15] &^= 0x80 }, 1},
		{"a tuple that does not belong in its bucket", func(s *scene, slot []byte, f *Flow) {
			tuple := f.Tuple
			for h := homesOfTuple(s.table, &tuple); slices.Contains([]uint32{h.near, h.first, h.second}, bucketOf(f.slot)); h = homesOfTuple(s.table, &tuple) {
				tuple.SrcPort++
			}
			binary.BigEndian.PutUint16(slot[8:], tuple.SrcPort)
		}, 1},
		{"a mode that does not exist", func(s *scene, slot []byte, f *Flow) { slot[5] = 77 }, 1},
		{"a flag that does not exist", func(s *scene, slot []byte, f *Flow) { slot[6] |= 0x80 }, 1},
		{"another incarnation in the state word", func(s *scene, slot []byte, f *Flow) { slot[54]++ }, 1},
		{"a peer outside the table", func(s *scene, slot []byte, f *Flow) { slot[115] = 0x7f }, 0},
		{"the header as a peer", func(s *scene, slot []byte, f *Flow) { binary.LittleEndian.PutUint32(slot[112:], 0) }, 0},
		{"itself as a peer", func(s *scene, slot []byte, f *Flow) { binary.LittleEndian.PutUint32(slot[112:], f.slot) }, 0},
		{"another flow's slot as a peer", func(s *scene, slot []byte, f *Flow) {
			binary.LittleEndian.PutUint32(slot[112:], s.bystanders[0].slot)
		}, 0},
		{"two directions that both are replies", func(s *scene, slot []byte, f *Flow) { slot[6] ^= byte(FlagReply) }, 0},
	} {
		s := newScene(t)
		fwd, rev := tcp6.connect(1, 1000, 1)
		mustInsert(t, s.table, fwd, rev, 9)
		c.damage(s, s.mem.slot(fwd.slot), fwd)
		_, report, err := s.mem.open()
		if err != nil {
			t.Fatal(err)
		}
		if report.Damaged != c.damaged || report.Half != 2-c.damaged || report.Flows != len(s.bystanders) {
			t.Errorf("%s: report is %+v, want %d damaged, %d half, %d flows", c.because, report, c.damaged, 2-c.damaged, len(s.bystanders))
		}
		if f, found := s.expect(s.mem, 0, &fwd.Tuple); found {
			t.Errorf("%s: still there: %+v", c.because, f)
		}
	}
}

// A tuple that is there twice is kept once.
func TestRepairDuplicate(t *testing.T) {
	s := newScene(t)
	fwd, rev := udp4.connect(1, 1000, 1)
	mustInsert(t, s.table, fwd, rev, 9)
	spare := s.table.place(homesOfTuple(s.table, &fwd.Tuple), 0)
	if spare == 0 {
		t.Fatal("no room for the duplicate")
	}
	copy(s.mem.slot(spare), s.mem.slot(fwd.slot))
	_, report, err := s.mem.open()
	if err != nil {
		t.Fatal(err)
	}
	if report.Damaged != 1 {
		t.Errorf("report is %+v, want one damaged slot", report)
	}
	s.expect(s.mem, 0, &fwd.Tuple)
}

func homesOfTuple(t *Table, tuple *Tuple) homes {
	var k key
	k.encode(tuple)
	return t.homesOf(&k)
}

// Opening again changes not one byte of a table at rest but the count of starts, since
// the kernel is using it.
func TestMapDisturbsNothing(t *testing.T) {
	s := newScene(t)
	keys := s.table.Keys()
	before := s.mem.clone()
	table, report, err := s.mem.open()
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Starts: 2, Flows: len(s.bystanders)}
	if report != want {
		t.Errorf("report is %+v, want %+v", report, want)
	}
	if table.Keys() != keys {
		t.Error("the keys changed")
	}
	copy(before.slots[startsOffset:], s.mem.slots[startsOffset:startsOffset+4])
	if !before.equal(s.mem) {
		t.Error("bytes changed")
	}
}

const startsOffset = 56

// Half-open connections are found again, in their order.
func TestMapFindsHalfOpen(t *testing.T) {
	mem := newMemory(RoundSlots(256))
	table, _, err := mem.open()
	if err != nil {
		t.Fatal(err)
	}
	table.SetHalfOpenMax(100)
	var all []*Flow
	for _, i := range rand.Perm(90) {
		fwd, rev := tcp4.connect(i, 1000, 1)
		mustInsert(t, table, fwd, rev, uint32(100+i))
		all = append(all, fwd)
	}
	slices.SortFunc(all, func(a, b *Flow) int { return int(a.LastSeen) - int(b.LastSeen) })
	established := all[0]
	peer := mustPeer(t, table, established)
	table.Touch(established, StateACK, 300)
	table.Touch(peer, StateSYN, 300)
	if table, _, err = mem.open(); err != nil {
		t.Fatal(err)
	}
	if got := table.HalfOpen(); got != 89 {
		t.Errorf("%d are half-open, want 89: none may be lost before the bound is known", got)
	}
	table.SetHalfOpenMax(10)
	checked(t, table)
	for i, f := range all {
		var got Flow
		want := i == 0 || i >= 80
		if table.Lookup(&f.Tuple, &got) != want {
			t.Errorf("flow %d by age is there: %v, want %v", i, !want, want)
		}
	}
}

func TestMapRefuses(t *testing.T) {
	valid := func(t *testing.T) []byte { return newScene(t).mem.slots }
	u32 := binary.LittleEndian.PutUint32
	for _, c := range []struct {
		because string
		mem     func(t *testing.T) []byte
		says    string
		layout  bool
	}{
		{"no memory", func(*testing.T) []byte { return nil }, "make the map larger", false},
		{"a header and seven slots", func(*testing.T) []byte { return newMemory(8).slots }, "make the map larger", false},
		{"memory that begins at an odd address", func(*testing.T) []byte { return newMemory(10).slots[1:] }, "page boundary", false},
		{"something else", func(*testing.T) []byte { return bytes.Repeat([]byte("ELF\x7f"), 1152/4) }, "remove the pinned map", true},
		{"a layout of the future", func(t *testing.T) []byte { m := valid(t); m[7]++; return m }, "layout 5, this program takes 4", true},
		{"slots of another size", func(t *testing.T) []byte { m := valid(t); u32(m[12:], 256); return m }, "256 bytes", true},
		{"a table cut short", func(t *testing.T) []byte { return valid(t)[:65*SlotSize] }, "16 buckets, the memory holds 8", true},
		{"a table in memory that grew", func(t *testing.T) []byte { return append(valid(t), make([]byte, 128*SlotSize)...) }, "16 buckets, the memory holds 32", true},
		{"a key that is zero", func(t *testing.T) []byte { m := valid(t); u32(m[20:], 0); return m }, "key 1 is zero", true},
		{"flows without a header", func(t *testing.T) []byte { m := valid(t); u32(m, 0); u32(m[4:], 0); return m }, "no header", true},
	} {
		mem := c.mem(t)
		before := bytes.Clone(mem)
		tags := make([]byte, 64*TagSize)
		table, _, err := Map(mem, tags)
		if err == nil {
			t.Errorf("%s: made a table of %d buckets", c.because, table.Buckets())
			continue
		}
		if errors.Is(err, ErrLayout) != c.layout || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error is %q, want %q; ErrLayout: %v", c.because, err, c.says, c.layout)
		}
		if !bytes.Equal(mem, before) {
			t.Errorf("%s: memory was changed", c.because)
		}
		if _, err := View(mem, tags); err == nil {
			t.Errorf("%s: View takes it", c.because)
		}
	}
}

// Pages are larger than slots; the rest of the mapping is left alone.
func TestMapLeavesTheRest(t *testing.T) {
	mem, rest := newMemory(RoundSlots(64)), bytes.Repeat([]byte{0xa5}, 20*SlotSize+5)
	slots, tags := len(mem.slots), len(mem.tags)
	mem.slots, mem.tags = append(mem.slots, rest...), append(mem.tags, rest...)
	table, report, err := mem.open()
	if err != nil {
		t.Fatal(err)
	}
	if !report.Fresh || table.Buckets() != 8 {
		t.Errorf("report is %+v with %d buckets, want a fresh table of 8", report, table.Buckets())
	}
	use(t, table)
	if !bytes.Equal(mem.slots[slots:], rest) || !bytes.Equal(mem.tags[tags:], rest) {
		t.Error("bytes behind the table changed")
	}
}

// A header whose writer was killed before it wrote the magic number is written again.
func TestMapAfterHalfAHeader(t *testing.T) {
	mem := newMemory(RoundSlots(64))
	if _, _, err := mem.open(); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint64(mem.slots, 0)
	mem.scramble(rand.New(rand.NewPCG(1, 2)))
	table, report, err := mem.open()
	if err != nil || !report.Fresh {
		t.Fatalf("report is %+v, error %v", report, err)
	}
	checked(t, table)
}

func TestView(t *testing.T) {
	s := newScene(t)
	s.mem.slot(s.bystanders[0].slot)[0] |= 1 // a writer was killed there
	before := s.mem.clone()
	view, err := s.mem.view()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for f := range view.Range {
		var peer Flow
		if !view.Peer(f, &peer) {
			t.Errorf("%v has no peer", f.Tuple)
		}
		n++
	}
	if n != len(s.bystanders)-1 || view.Cap() != s.table.Cap() || view.Keys() != s.table.Keys() {
		t.Errorf("%d flows of %d are seen, without the torn one", n, len(s.bystanders))
	}
	if !before.equal(s.mem) {
		t.Error("a view changed bytes")
	}
}

// TestViewOfTornPairs: a direction that names another flow's slot as its opposite, or one that is
// not there, has none that could be told.
func TestViewOfTornPairs(t *testing.T) {
	s := newScene(t)
	a, b := s.bystanders[0], s.bystanders[1]
	var peer Flow
	view := func() *Reader {
		v, err := s.mem.view()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if !view().Peer(a, &peer) {
		t.Fatal("a whole flow has no opposite direction")
	}
	s.table.slots[a.slot].peer.Store(b.slot)
	if view().Peer(a, &peer) {
		t.Errorf("the opposite direction of %v is said to be %v", a.Tuple, peer.Tuple)
	}
	s.table.slots[a.slot].peer.Store(1 << 31)
	if view().Peer(a, &peer) {
		t.Errorf("a slot beyond the table is said to hold %v", peer.Tuple)
	}
}
