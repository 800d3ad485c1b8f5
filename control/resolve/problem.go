package resolve

import (
	"fmt"

	"lace-cni.io/lace/control/model"
)

// maxProblems bounds what one object may say: a slice of a thousand wrong addresses is
// one mistake, not a thousand.
const maxProblems = 8

// report collects the Problems of one object.
type report struct {
	kind, object string
	problems     []model.Problem
	left         int // not listed

	familyTold bool // a mistake in the Service's own addresses: what it lacks in consequence is not told
	typeTold   bool // a mistake in its type, likewise
}

// any says whether there is a Problem.
func (r *report) any() bool { return len(r.problems) > 0 }

// add takes a field path, one CamelCase word, and a message that says what is wrong and
// what to do.
func (r *report) add(field, reason, format string, args ...any) {
	if len(r.problems) >= maxProblems {
		r.left++
		return
	}
	r.problems = append(r.problems, model.Problem{
		Kind: r.kind, Object: r.object, Field: field, Reason: reason, Message: fmt.Sprintf(format, model.Excerpts(args)...),
	})
}

// all returns what was collected, the last entry saying how much more there was.
func (r *report) all() []model.Problem {
	if r.left > 0 {
		last := &r.problems[len(r.problems)-1]
		last.Message += fmt.Sprintf(" (and %d more Problems of this object)", r.left)
	}
	return r.problems
}
