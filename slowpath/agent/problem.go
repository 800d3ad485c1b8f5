package agent

import (
	"slices"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
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

// problems are those of the publisher, those of node ports and health check ports, a
// kube-proxy that came, forwarding that is off, endpoints to which nothing leads, what fills up, who loses packets for their length, and what ails the
// fast path.
func (o *observer) problems(f fastpath) []model.Problem {
	problems := o.publisher.Problems()
	more := slices.Concat(o.ports.found(), o.proxies.found(), o.forwarding.found(), o.pathless.found())
	if o.asked != nil {
		more = slices.Concat(more, o.asked.Problems())
	}
	if f.alive {
		more = slices.Concat(more, o.alarms(f.totals), o.blackHoles(f.totals, monotonic()), o.sockets(&f.file))
	}
	if len(more) > 0 {
		problems = publish.Sorted(slices.Concat(problems, more))
	}
	p := model.Problem{Kind: "Node", Object: o.config.NodeName}
	switch {
	case !f.alive:
		p.Reason, p.Message = "FastpathDown", f.message
	case f.totals.Gauges[counter.Broken] > 0:
		p.Reason = "FastpathImpaired"
		p.Message = "lace-fastpath cannot put right what somebody took away or changed on this node, and tries again: its log names it"
	default:
		return problems
	}
	return publish.Sorted(append(slices.Clone(problems), p))
}

// Place implements adminserver.Node.
func (o *observer) Place(p model.Problem) source.Place { return o.config.place(p) }

// place is where the object of a Problem is written; zero: the source has no places, or none for
// this Problem.
func (c *Config) place(p model.Problem) source.Place {
	if s, places := c.Source.(source.Placer); places {
		return s.Place(p)
	}
	return source.Place{}
}
