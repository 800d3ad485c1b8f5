package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/source/dir"
)

// TestAFastPathThatDoesNotTakeTheLayoutKeepsItsSnapshot: the agent of another version says
// what is wrong, leaves the file alone, and goes on as soon as both fit.
func TestAFastPathThatDoesNotTakeTheLayoutKeepsItsSnapshot(t *testing.T) {
	for _, c := range []struct {
		sentence string
		layouts  string
		writes   bool
	}{
		{"the fast path is older", fmt.Sprintf("[%d]", table.Layout-1), false},
		{"the fast path is newer and has left this layout behind", fmt.Sprintf("[%d, %d]", table.Layout+1, table.Layout+2), false},
		{"the fast path is newer and still takes this layout", fmt.Sprintf("[%d, %d]", table.Layout, table.Layout+1), true},
		{"the fast path has not said anything", "[]", true},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			config := config(t, io.Discard)
			config.Source = dir.New(t.TempDir())
			if err := os.MkdirAll(config.StateDir, 0o700); err != nil {
				t.Fatal(err)
			}
			announce := func(layouts string) {
				t.Helper()
				if err := os.WriteFile(config.path("fastpath.json"), []byte(`{"pid": 7, "snapshotLayouts": `+layouts+`}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			announce(c.layouts)
			admin := start(t, config)
			written := func() error {
				s, err := table.Open(config.path("snapshot"))
				if err == nil {
					s.Close()
				}
				return err
			}
			if !c.writes {
				eventually(t, "a Problem that names both layouts", func() error {
					list, err := admin.Problems(t.Context())
					for _, p := range list.Items {
						if p.Reason == "NotPublished" && strings.Contains(p.Message, fmt.Sprintf("this lace-agent writes layout %d", table.Layout)) {
							return nil
						}
					}
					return errors.Join(err, fmt.Errorf("Problems are %+v", list.Items))
				})
				if err := written(); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the snapshot: %v, want that nothing was written", err)
				}
				announce(fmt.Sprintf("[%d]", table.Layout)) // the fast path of this version started
			}
			eventually(t, "a snapshot", written)
			eventually(t, "no Problem of a layout", func() error {
				list, err := admin.Problems(t.Context())
				for _, p := range list.Items {
					if p.Reason == "NotPublished" {
						return fmt.Errorf("%+v", p)
					}
				}
				return err
			})
		})
	}
}
