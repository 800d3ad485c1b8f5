package attach

import (
	"cmp"
	"fmt"
	"slices"

	"lace-cni.io/lace/control/model"
)

const reasonRouteRefused = "RouteRefused"

// problem notes something about a device that could not be honoured.
func (d *derivation) problem(device, reason, format string, args ...any) {
	d.problems = append(d.problems, model.Problem{
		Kind: "Port", Object: device, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

func sortProblems(p []model.Problem) {
	slices.SortFunc(p, func(a, b model.Problem) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
}
