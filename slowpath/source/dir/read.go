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

// Place is where in the folder an object is written.
type Place struct {
	File     string
	Document int // of the file, from 1, as Problems count them
	Line     int // of the file, from 1: the first one of the document that is not empty

	Item string // of a list, as items[3]; empty: the object is the document
}

// String is the place in the words of a Problem; empty: none.
func (p Place) String() string {
	if p.File == "" {
		return ""
	}
	s := fmt.Sprintf("%s line %d", documentName(p.File, p.Document), p.Line)
	if p.Item != "" {
		s += " " + p.Item
	}
	return s
}

// Reading is what a folder says at one moment: what a Dir delivers first.
type Reading struct {
	Objects  []Object // by kind and name, each once
	Problems []model.Problem
}

// Read reads the folder at path once, as a Dir does but for the waiting: a file that is being
// written is taken as it is. It returns an error when the folder cannot be read, or when ctx
// ends first. A folder on a server that does not answer does not keep it from that.
func Read(ctx context.Context, path string) (*Reading, error) {
	type result struct {
		reading *Reading
		err     error
	}
	done := make(chan result, 1)
	go func() {
		r, err := readOnce(path)
		done <- result{r, err}
	}()
	select {
	case r := <-done:
		return r.reading, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the folder %s does not answer: %w", path, context.Cause(ctx))
	}
}

func readOnce(path string) (*Reading, error) {
	switch about, err := os.Stat(path); {
	case err != nil:
		return nil, fmt.Errorf("the folder cannot be read: %w", err)
	case !about.IsDir():
		return nil, fmt.Errorf("%s: it is no folder; name the folder that holds the YAML files", path)
	}
	d, now := newFolder(path, 0), time.Now()
	out := d.look(now, now)
	if out.err != nil {
		return nil, fmt.Errorf("the folder cannot be read: %w", out.err)
	}
	return &Reading{Objects: d.taken(), Problems: out.problems}, nil
}

// taken are the objects that were delivered, each where it is taken from.
func (d *folder) taken() (out []Object) {
	met := make(map[objectKey]bool, len(d.delivered))
	for p := range d.each {
		k := p.key()
		if _, has := d.delivered[k]; !has || met[k] {
			continue
		}
		met[k] = true
		out = append(out, *p.Object)
	}
	slices.SortFunc(out, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), model.Name.Compare(a.Name, b.Name))
	})
	return out
}
