package agent

import (
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/publish"
)

// State implements adminserver.Node: what was published last, with the Problems that
// hold at this moment. There is one as soon as there is a Problem to show.
func (o *observer) State() *publish.State {
	published, problems := o.publisher.State(), o.problems(look(o.config))
	if published == nil && len(problems) == 0 {
		return nil
	}
	if published == nil {
		published = &publish.State{Node: model.Node{Name: o.config.NodeName}}
	}
	state := *published
	state.Problems = problems
	return &state
}

// problems are those of the publisher, and that the fast path is down.
func (o *observer) problems(f fastpath) []model.Problem {
	problems := o.publisher.Problems()
	if f.alive {
		return problems
	}
	down := model.Problem{Kind: "Node", Object: o.config.NodeName, Reason: "FastpathDown", Message: f.message}
	return publish.Sorted(append(slices.Clone(problems), down))
}
