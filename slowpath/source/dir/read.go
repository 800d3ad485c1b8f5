package dir

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
)

// Reading is what a folder says at one moment: what a Dir delivers first.
type Reading struct {
	Files    int      // that count, right or wrong
	Objects  []Object // by kind and name, each once
	Places   Places   // of these and of the Problems
	Problems []model.Problem
}

// Read reads the folder at path once, as a Dir does but for the waiting: a file that is being
// written is taken as it is. It returns an error when the folder cannot be read, or when ctx
// ends first. A folder on a server that does not answer does not keep it from that. Nobody comes
// back for an answer that is late, so that each file is waited for up to MaxWaitOnce.
func Read(ctx context.Context, path string) (*Reading, error) {
	type result struct {
		reading *Reading
		err     error
	}
	done := make(chan result, 1)
	go func() {
		r, err := readOnce(newOnce(ctx, path))
		done <- result{r, err}
	}()
	select {
	case r := <-done:
		if ctx.Err() == nil {
			return r.reading, r.err
		}
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("the folder %s was not read to its end: %w", path, context.Cause(ctx))
}

// newOnce is a folder that is looked at once, until ctx ends.
func newOnce(ctx context.Context, path string) *folder {
	d := newFolder(path, 0)
	d.patience.wait, d.patience.stop = MaxWaitOnce, ctx.Done()
	return d
}

// readOnce returns a part of what the folder says when it is stopped.
func readOnce(d *folder) (*Reading, error) {
	switch about, err := os.Stat(d.path); {
	case err != nil:
		return nil, fmt.Errorf("the folder cannot be read: %w", err)
	case !about.IsDir():
		return nil, fmt.Errorf("%s: it is no folder; name the folder that holds the YAML files", d.path)
	}
	now := time.Now()
	out := d.look(now, now)
	if out.err != nil {
		return nil, fmt.Errorf("the folder cannot be read: %w", out.err)
	}
	return &Reading{Files: len(d.files), Objects: d.taken(), Places: d.places, Problems: out.problems}, nil
}

// taken are the objects that were delivered.
func (d *folder) taken() []Object {
	out := make([]Object, 0, len(d.delivered))
	for _, o := range d.delivered {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), model.Name.Compare(a.Name, b.Name))
	})
	return out
}
