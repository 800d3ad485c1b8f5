package counter

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lace-cni.io/lace/fastpath/reason"
)

// A file that somebody removes or replaces is written anew, with all that was in it, and
// the counts go on in it.
func TestAFileThatWasTakenAwayIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		sentence string
		spoil    func(path string) error
		made     bool
	}{
		{"it is removed", os.Remove, true},
		{"it is renamed", func(path string) error { return os.Rename(path, path+".old") }, true},
		{"another file is put in its place", func(path string) error {
			if err := os.WriteFile(path+".new", []byte("nonsense"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, true},
		{"it is cut and removed", func(path string) error {
			if err := os.Truncate(path, 8); err != nil {
				return err
			}
			return os.Remove(path)
		}, true},
		{"it is left alone", func(string) error { return nil }, false},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "counters")
			f := create(t, path, 2)
			f.Worker(1).Count(reason.Reply, 10)
			f.Worker(1).Write(1)
			f.Set(Flows, 7)
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			if made, err := f.Remake(); err != nil || made != c.made {
				t.Fatalf("Remake gives %t, %v, want %t", made, err, c.made)
			}
			if c.sentence != "it is cut and removed" { // there the next write brings them
				if got := totals(t, path); got.Reasons[reason.Reply].Packets != 1 || got.Gauges[Flows] != 7 {
					t.Errorf("at once: %d replies and %d flows, want 1 and 7", got.Reasons[reason.Reply].Packets, got.Gauges[Flows])
				}
			}
			f.Worker(1).Count(reason.Reply, 10)
			f.Worker(1).Write(2)
			if got := totals(t, path); got.Reasons[reason.Reply].Packets != 2 || got.Gauges[Flows] != 7 {
				t.Errorf("later: %d replies and %d flows, want 2 and 7", got.Reasons[reason.Reply].Packets, got.Gauges[Flows])
			}
		})
	}
}

// Workers write while the file is made again, and nobody is told of an error.
func TestWorkersDoNotNoticeThatTheFileIsMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	f := create(t, path, 2)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			for n := range 2000 {
				f.Worker(i).Count(reason.Reply, 10)
				f.Worker(i).Write(int64(n + 1))
			}
		})
	}
	for range 50 {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		if made, err := f.Remake(); !made || err != nil {
			t.Errorf("Remake gives %t, %v", made, err)
		}
	}
	all.Wait()
	for i := range 2 {
		f.Worker(i).Write(1 << 40)
	}
	if got := totals(t, path).Reasons[reason.Reply].Packets; got != 4000 {
		t.Errorf("%d packets, want 4000", got)
	}
	if err := f.Failed(); err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeMadeIsSaidSo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "counters")
	f := create(t, path, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if made, err := f.Remake(); made || err == nil {
		t.Errorf("Remake with a directory in the way gives %t, %v, want an error", made, err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if made, err := f.Remake(); !made || err != nil {
		t.Errorf("Remake with the way free gives %t, %v, want true", made, err)
	}
}
