package counter

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/reason"
)

func create(t *testing.T, path string, workers int) *File {
	t.Helper()
	f, err := Create(path, workers)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

func totals(t *testing.T, path string) Totals {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer r.Close()
	return r.Totals()
}

func TestCountsOfAllWorkersAreSummed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	f := create(t, path, 2)
	a, b := f.Worker(0), f.Worker(1)
	a.Count(reason.NewFlow, 100)
	a.Count(reason.NewFlow, 50)
	b.Count(reason.NewFlow, 1)
	b.Count(reason.RateLimited, 7)
	a.Add(Received, 3)
	b.Add(Received, 4)
	a.Publish(1000)
	b.Publish(2000)
	f.Set(Generation, 9)
	f.Add(Refused, 2)

	got := totals(t, path)
	if want := (Tally{Packets: 3, Bytes: 151}); got.Reasons[reason.NewFlow] != want {
		t.Errorf("new-flow is %+v, want %+v", got.Reasons[reason.NewFlow], want)
	}
	if want := (Tally{Packets: 1, Bytes: 7}); got.Reasons[reason.RateLimited] != want {
		t.Errorf("rate-limited is %+v, want %+v", got.Reasons[reason.RateLimited], want)
	}
	if got.Events[Received] != 7 {
		t.Errorf("received is %d, want 7", got.Events[Received])
	}
	if got.Gauges[Generation] != 9 || got.Gauges[Refused] != 2 {
		t.Errorf("generation %d, refused %d, want 9 and 2", got.Gauges[Generation], got.Gauges[Refused])
	}
	if diff := cmp.Diff([]int64{1000, 2000}, got.Beats); diff != "" {
		t.Errorf("heartbeats (-want +got):\n%s", diff)
	}
	if got.Gauges[Started] == 0 {
		t.Error("the start of the process is not noted")
	}
}

func TestCountsAreSeenOnlyAfterPublish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	b := create(t, path, 1).Worker(0)
	b.Count(reason.Reply, 10)
	if got := totals(t, path).Reasons[reason.Reply]; got != (Tally{}) {
		t.Errorf("before Publish a reader sees %+v", got)
	}
	if b.Packets(reason.Reply) != 1 {
		t.Errorf("the worker itself sees %d packets, want 1", b.Packets(reason.Reply))
	}
	b.Publish(1)
	if got := totals(t, path).Reasons[reason.Reply]; got != (Tally{1, 10}) {
		t.Errorf("after Publish a reader sees %+v, want 1 packet of 10 bytes", got)
	}
}

func TestCountsGoOnAfterARestartAndGaugesBeginAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	first := create(t, path, 2)
	first.Worker(1).Count(reason.Established, 60)
	first.Worker(1).Add(Transmitted, 5)
	first.Worker(1).Publish(1)
	first.Set(Generation, 44)

	second := create(t, path, 2)
	second.Worker(1).Count(reason.Established, 60)
	second.Worker(1).Publish(2)
	got := totals(t, path)
	if want := (Tally{2, 120}); got.Reasons[reason.Established] != want {
		t.Errorf("established is %+v, want %+v", got.Reasons[reason.Established], want)
	}
	if got.Events[Transmitted] != 5 {
		t.Errorf("transmitted is %d, want 5", got.Events[Transmitted])
	}
	if got.Gauges[Generation] != 0 {
		t.Errorf("generation is %d, want 0: no snapshot is in use yet", got.Gauges[Generation])
	}
}

func TestAFileOfAnotherShapeIsReplacedAndItsReadersKeepTheirValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	old := create(t, path, 1)
	old.Worker(0).Count(reason.Reply, 1)
	old.Worker(0).Publish(1)
	reader, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()

	create(t, path, 3)
	if got := totals(t, path); got.Workers != 3 || got.Reasons[reason.Reply].Packets != 0 {
		t.Errorf("the new file has %d workers and %d replies, want 3 and 0", got.Workers, got.Reasons[reason.Reply].Packets)
	}
	if got := reader.Totals(); got.Workers != 1 || got.Reasons[reason.Reply].Packets != 1 {
		t.Errorf("a reader of the old file sees %d workers and %d replies, want 1 and 1", got.Workers, got.Reasons[reason.Reply].Packets)
	}
}

func TestForeignFilesAreRefusedByReadersAndReplacedByTheWriter(t *testing.T) {
	word := func(i int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[8*i:], v); return b }
	}
	cases := []struct {
		sentence string
		change   func([]byte) []byte
	}{
		{"an empty file", func([]byte) []byte { return nil }},
		{"a file that ends inside the header", func(b []byte) []byte { return b[:100] }},
		{"a file without the magic number", word(wordMagic, 1)},
		{"a file of a later layout", word(wordLayout, Layout+1)},
		{"a file that claims more workers than it has room for", word(wordWorkers, 200)},
		{"a file with an absurd number of workers", word(wordWorkers, 1<<63)},
		{"a file whose blocks are shorter than their contents", word(wordStride, 1)},
		{"a file with more gauges than the header holds", word(wordGauges, 100)},
		{"a file cut in the middle of the last block", func(b []byte) []byte { return b[:len(b)-8] }},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "counters")
			create(t, path, 2)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.change(good), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path); !errors.Is(err, ErrLayout) {
				t.Errorf("Open gives %v, want ErrLayout", err)
			}
			create(t, path, 2)
			if got := totals(t, path).Workers; got != 2 {
				t.Errorf("the writer's new file has %d workers, want 2", got)
			}
		})
	}
}

func TestAReaderTakesAFileWithMoreNamesThanItKnows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	later := shape{workers: 1, reasons: int(reason.Count) + 3, events: int(Events) + 2, gauges: int(Gauges) + 1}
	later.stride = later.used()
	f, err := replace(path, later)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.words[later.packet(0)+int(reason.Reply)] = 11
	f.words[later.byteAt(0)+int(reason.Reply)] = 12
	f.words[later.event(0)+int(Waits)] = 13
	f.words[later.beat(0)] = 14
	f.write(f.words, 0)
	got := totals(t, path)
	if got.Reasons[reason.Reply] != (Tally{11, 12}) || got.Events[Waits] != 13 || got.Beats[0] != 14 {
		t.Errorf("got %+v, %d waits, beat %d; want 11 packets of 12 bytes, 13, 14",
			got.Reasons[reason.Reply], got.Events[Waits], got.Beats[0])
	}
}

// Somebody truncates the file under both: the writer goes on, a reader is told, and the
// next writes make the file whole with nothing lost.
func TestATruncatedFileIsMadeWholeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	f := create(t, path, 2)
	for i := range 2 {
		f.Worker(i).Count(reason.Reply, 10)
		f.Worker(i).Publish(1)
	}
	before, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 8, headerSize * wordBytes, headerSize*wordBytes + 100} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if got := before.Totals().Reasons[reason.Reply]; got != (Tally{2, 20}) {
			t.Errorf("cut to %d bytes: a reader from before sees %+v", size, got)
		}
		if _, err := Open(path); !errors.Is(err, ErrLayout) {
			t.Errorf("cut to %d bytes: Open gives %v, want ErrLayout", size, err)
		}
		f.Set(Flows, 3)
		for i := range 2 {
			f.Worker(i).Publish(1 + writeEvery + size)
			f.Worker(i).Write(2)
		}
		got := totals(t, path)
		if got.Reasons[reason.Reply] != (Tally{2, 20}) || got.Gauges[Flows] != 3 || got.Gauges[Started] == 0 {
			t.Errorf("cut to %d bytes and written again: %+v, flows %d", size, got.Reasons[reason.Reply], got.Gauges[Flows])
		}
	}
	if err := f.Failed(); err != nil {
		t.Error(err)
	}
}

func TestCountsGatherBetweenWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	b := create(t, path, 1).Worker(0)
	for _, c := range []struct {
		sentence string
		now      int64
		seen     uint64
	}{
		{"the first Publish is seen", 1, 1},
		{"one that follows at once is not", writeEvery, 1},
		{"all is seen when the time has come", 1 + writeEvery, 3},
	} {
		b.Count(reason.Reply, 10)
		b.Publish(c.now)
		if got := totals(t, path).Reasons[reason.Reply].Packets; got != c.seen {
			t.Errorf("%s: %d packets, want %d", c.sentence, got, c.seen)
		}
	}
	b.Count(reason.Reply, 10)
	b.Write(2 + writeEvery)
	if got := totals(t, path).Reasons[reason.Reply].Packets; got != 4 {
		t.Errorf("after Write: %d packets, want 4", got)
	}
}

func TestAnErrorOfWritingIsToldOnce(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "counters"), 1)
	if err != nil {
		t.Fatal(err)
	}
	f.file.Load().Close()
	f.Worker(0).Publish(1)
	if err := f.Failed(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Failed gives %v, want that the file is closed", err)
	}
	if err := f.Failed(); err != nil {
		t.Errorf("Failed gives %v again", err)
	}
}

func TestAMissingFileIsSaidToBeMissing(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "counters"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open gives %v, want os.ErrNotExist", err)
	}
}

func TestAnImpossibleNumberOfWorkersIsRefused(t *testing.T) {
	for _, n := range []int{-1, 0, MaxWorkers + 1} {
		if _, err := Create(filepath.Join(t.TempDir(), "counters"), n); err == nil {
			t.Errorf("%d workers: no error", n)
		}
	}
}

func TestASymbolicLinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "counters")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	create(t, path, 1)
	if b, err := os.ReadFile(target); err != nil || string(b) != "precious" {
		t.Errorf("the target holds %q, %v; want it untouched", b, err)
	}
}

func TestEveryEventAndGaugeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for e := range Events {
		seen[e.String()] = true
	}
	for g := range Gauges {
		seen[g.String()] = true
	}
	if want := int(Events) + int(Gauges); len(seen) != want || seen[""] || seen["unknown"] {
		t.Errorf("%d different names, want %d, none empty: %v", len(seen), want, seen)
	}
	if Events.String() != "unknown" || Gauges.String() != "unknown" {
		t.Error("a number beyond the last has a name")
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	b := create(t, filepath.Join(t.TempDir(), "counters"), 1).Worker(0)
	n := testing.AllocsPerRun(100, func() {
		b.Count(reason.Established, 64)
		b.Add(Received, 1)
		b.Write(5)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCount(b *testing.B) {
	f, err := Create(filepath.Join(b.TempDir(), "counters"), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := f.Worker(0)
	for i := 0; b.Loop(); i++ {
		w.Count(reason.Established, 64)
		if i%64 == 0 {
			w.Publish(int64(i))
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	f, err := Create(filepath.Join(b.TempDir(), "counters"), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := f.Worker(0)
	for i := 0; b.Loop(); i++ {
		w.Write(int64(i))
	}
}
