package dir

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A folder that is read once is read until the context ends, and no longer: what was read of it
// by then is not shown as what it says.
func TestReadEndsWithItsContext(t *testing.T) {
	path := folderOf(t, readFiles)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Read(ctx, path); r != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Errorf("with a context that has ended: %+v, error %v; want one that says so and names the folder", r, err)
	}
}

// What is left of a folder when it is stopped is neither decoded nor opened.
func TestNothingIsReadAfterTheEnd(t *testing.T) {
	for _, c := range []struct {
		name    string
		stop    bool
		objects int
		opened  int
	}{
		{"it is stopped while the first file is read", true, 0, 1},
		{"it is not stopped", false, 4, 2},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		d := newOnce(ctx, folderOf(t, map[string]string{
			"a.yaml": node("n1") + "---\n" + node("n2"), "b.yaml": node("n3") + "---\n" + node("n4"),
		}))
		opened := make(chan string, 2)
		d.open = func(path string, most int64) ([]byte, version, error) {
			opened <- path
			b, v, err := read(path, most)
			if c.stop {
				cancel()
			}
			return b, v, err
		}
		r, err := readOnce(d)
		if err != nil || len(r.Objects) != c.objects || len(opened) != c.opened {
			t.Errorf("%s: %d objects of %d files, error %v; want %d of %d", c.name, len(r.Objects), len(opened), err, c.objects, c.opened)
		}
		cancel()
	}
}

// A file that a busy machine reads slowly is not missing from a folder that is read once.
func TestReadOnceWaitsForASlowFile(t *testing.T) {
	d := newOnce(t.Context(), folderOf(t, map[string]string{"slow.yaml": node("n1"), "a.yaml": node("n2")}))
	d.open = func(path string, most int64) ([]byte, version, error) {
		if filepath.Base(path) == "slow.yaml" {
			<-time.After(MaxWait + MaxWait/4)
		}
		return read(path, most)
	}
	r, err := readOnce(d)
	if err != nil || len(r.Objects) != 2 || len(r.Problems) != 0 {
		t.Errorf("%+v, error %v; want both Nodes and no Problem", r, err)
	}
}
