package publish_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/manifests"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

// said is a Problem in the words by which it is known; the message may name an address that
// only the node itself knows.
type said struct{ Kind, Object, Field, Reason string }

func saidOf(p model.Problem) said { return said{p.Kind, p.Object, p.Field, p.Reason} }

// TestAFolderIsJudgedAsAPublisherDoes: for every mistake in every right Service, what is said
// of a folder beforehand is what a publisher says of the same objects, on a node with devices
// and addresses; and each is said with the file of its object.
func TestAFolderIsJudgedAsAPublisherDoes(t *testing.T) {
	made := 0
	for n, m := range mistakes() {
		for i := range rightServices {
			all := right()
			with := spoil([]string{"", "10.96.0.13"}[n%2], []int32{0, 1 << 30, -1}[(n+i)%3])
			if !m.make(&all[i], with) {
				continue
			}
			made++
			t.Run(fmt.Sprintf("%s, in %s", m.name, rightServices[i].namespace), func(t *testing.T) {
				files := newFiles(t, all)
				j, err := manifests.Judge(t.Context(), files.path, manifests.Config{Node: "n1", Ranges: serviceRanges})
				if err != nil {
					t.Fatal(err)
				}
				p := runUnready(t, publish.Config{Path: filepath.Join(t.TempDir(), "snapshot"), Ranges: serviceRanges})
				p.Apply(files.changes, nil)
				p.Synced()
				p.SetAttachments(wired(), nil)
				want, got := []said(nil), []said(nil)
				for _, p := range settled(t, p).Problems {
					want = append(want, saidOf(p))
				}
				for _, p := range j.Problems {
					got = append(got, saidOf(p))
					if at, want := j.Places.Of(p), files.places[p.Kind+" "+p.Object]; at.File != want || at.Line != 1 {
						t.Errorf("%s %s is told to be at %v, want %s line 1", p.Kind, p.Object, at, want)
					}
				}
				if d := cmp.Diff(want, got); d != "" || len(got) != 1 {
					t.Errorf("Problems, of which there should be one (-publisher +folder):\n%s", d)
				}
			})
		}
	}
	if made < 150 {
		t.Errorf("only %d mistakes were made", made)
	}
}

// files are objects as changes, and each in a file of its own.
type files struct {
	path    string
	changes []source.Change
	places  map[string]string // file by kind and object
}

func newFiles(t *testing.T, all []objects) *files {
	t.Helper()
	f := &files{path: t.TempDir(), changes: changesOf(all), places: map[string]string{}}
	for i, c := range f.changes {
		text, err := yaml.Marshal(c.Object)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%03d.yaml", i)
		if err := os.WriteFile(filepath.Join(f.path, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		f.places[string(c.Kind)+" "+c.Name.String()] = name
	}
	return f
}

// TestRehearsalEndsWithItsContext: what was not worked out is an error, and not a folder without
// Problems.
func TestRehearsalEndsWithItsContext(t *testing.T) {
	for _, end := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		c := publish.Config{Node: "n1", Ranges: serviceRanges, Ranged: func([]netip.Prefix) { // before the first Service
			if end {
				cancel()
			}
		}}
		problems, err := publish.Rehearse(ctx, c, changesOf(right()), nil, wired())
		if end != errors.Is(err, context.Canceled) || !end && err != nil || len(problems) != 0 {
			t.Errorf("a context that ends in between %v: Problems %v, error %v", end, problems, err)
		}
		cancel()
	}
}
