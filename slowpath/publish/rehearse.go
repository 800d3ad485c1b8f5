package publish

import (
	"context"
	"fmt"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// Rehearse returns the Problems, sorted, that a Publisher of this configuration would have for
// what a source delivers and for a node with these attachments. It works them out as a
// Publisher does, from no snapshot of before, and reads and writes no file: of the
// functions in the configuration it calls Ranged alone. An error is a mistake in the settings,
// or says that ctx ended first.
func Rehearse(ctx context.Context, c Config, changes []source.Change, problems []model.Problem, a model.Attachments) ([]model.Problem, error) {
	c.complete()
	compiler := compile.New(nil)
	compiler.SetSettings(c.Settings)
	w := newWork(&c, compiler, 0)
	m := mail{sourceProblems: problems, told: true, synced: true, attached: &attached{attachments: a}}
	for _, change := range changes {
		m.add(change)
	}
	w.take(m)
	if err := w.resolve(ctx); err != nil {
		return nil, fmt.Errorf("the Problems were not worked out to the end: %w", err)
	}
	if _, _, err := compiler.Snapshot(1, time.Now()); err != nil {
		return nil, err
	}
	return w.allProblems(), nil
}
