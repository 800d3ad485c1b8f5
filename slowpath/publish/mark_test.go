package publish_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/publish"
)

// TestFileThatSomebodyElseChangesIsWrittenAgain, under the next generation, so that the
// fast path takes it, with all that it held.
func TestFileThatSomebodyElseChangesIsWrittenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	p := run(t, publish.Config{Path: path, Check: 20 * time.Millisecond})
	p.Apply(pair(1, 1, 2), nil)
	await(t, p, "the Service", func(s *publish.State) bool { return len(s.Services) == 1 })
	last := settled(t, p).Generation
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"it is removed", func() error { return os.Remove(path) }},
		{"a byte is changed in place", func() error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte{0xff}, 100)
			return err
		}},
		{"it is cut", func() error { return os.Truncate(path, 64) }},
		{"another file is put in its place", func() error {
			if err := os.WriteFile(path+".new", []byte("nonsense"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		s := await(t, p, c.name, func(s *publish.State) bool { return s.Generation > last })
		if last = s.Generation; generationOf(t, path) != last {
			t.Errorf("%s: the file has generation %d, published was %d", c.name, generationOf(t, path), last)
		}
		diffFrontends(t, c.name, path)
	}
}

// TestFileThatIsLeftAloneIsNotWrittenAgain, however often it is looked at, nor does its
// generation grow.
func TestFileThatIsLeftAloneIsNotWrittenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	p := run(t, publish.Config{Path: path, Check: time.Millisecond})
	p.Apply(pair(1, 1, 2), nil)
	await(t, p, "the Service", func(s *publish.State) bool { return len(s.Services) == 1 })
	before := settled(t, p).Generation
	time.Sleep(100 * time.Millisecond) // a hundred looks at the file
	if got := generationOf(t, path); got != before {
		t.Errorf("generation went from %d to %d with nothing changed", before, got)
	}
}

func generationOf(t *testing.T, path string) uint64 {
	t.Helper()
	s, err := table.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Generation()
}

func diffFrontends(t *testing.T, what, path string) {
	t.Helper()
	if d := cmp.Diff(map[string]string{"10.96.0.1": "10.128.1.1 10.128.1.2"}, frontends(t, path)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
