package record

import (
	"errors"
	"fmt"
)

// PartialSuffix is of the file beside a record that a run which was not completed leaves.
const PartialSuffix = ".partial"

// WritePart saves what there is of a run that was not completed, and why, beside path: a
// complete one that may be there stays. It returns the reason with where the figures are. A
// run without any is not saved.
func (r *Run) WritePart(path string, why error) error {
	if len(r.Samples) == 0 {
		return fmt.Errorf("%w: nothing is recorded, %s stays as it was", why, path)
	}
	r.Notes = append(r.Notes, "not a complete run: "+why.Error())
	part := path + PartialSuffix
	if err := r.Write(part); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w: what was measured is in %s, %s stays as it was", why, part, path)
}
