package compile

import (
	"slices"

	"lace-cni.io/lace/control/model"
)

// disputes are what several Services want, or somebody else has, as of the last snapshot. What
// there is to say of them is worked out again only when one of them has changed, so that a
// change of a Service that has none does not cost more however many there are.
type disputes struct {
	stale    bool
	problems []model.Problem // sorted
	lost     model.Lost
}

// weigh notes whether a frontend that has been settled is disputed.
func (c *Compiler) weigh(f *frontend) {
	contested, refused := f.claims.len() > 1, slices.ContainsFunc(f.claims.inOrder(), c.barred)
	_, clash := c.own.clashes[f.port]
	wasContested, wasRefused := enter(c.contested, f, contested), enter(c.refused, f, refused)
	c.disputes.stale = c.disputes.stale || clash || contested || refused || wasContested || wasRefused
}

// enter puts a frontend among others, or takes it out, and reports whether it was there.
func enter(of map[*frontend]struct{}, f *frontend, in bool) (was bool) {
	_, was = of[f]
	switch {
	case in:
		of[f] = struct{}{}
	case was:
		delete(of, f)
	}
	return was
}

// hear works out what there is to say.
func (c *Compiler) hear() {
	if !c.disputes.stale {
		return
	}
	problems := slices.Concat(c.conflicts(), c.refusals(), c.unasked())
	slices.SortFunc(problems, compareProblems)
	c.disputes = disputes{problems: problems, lost: c.findLost()}
}

// conflicts names every Service that does not get a frontend because another one has
// it, once however many of its ports are concerned.
func (c *Compiler) conflicts() (out []model.Problem) {
	lost := map[*service][]*claim{}
	for f := range c.contested {
		if f.holder == nil {
			continue
		}
		for _, l := range f.claims.inOrder() {
			if l != f.holder && !l.aliasOf.IsValid() && !c.excluded.service(l.service) && !c.barred(l) {
				lost[l.service] = append(lost[l.service], l)
			}
		}
	}
	for s, claims := range lost {
		first := slices.MinFunc(claims, func(a, b *claim) int { return a.compare(&b.key) })
		holder := first.holder.service
		why := "which keeps it"
		if knownOlder(holder.declared, s.declared) {
			why = "which is older"
		}
		own, what, others := "an address", first.String(), len(claims)-1
		if first.kind == model.NodePort {
			own = "a node port"
		}
		if first.kind == model.NodePort && first.holder.kind == model.NodePort {
			what, others = first.atTheNode(), first.others(claims)
		}
		out = append(out, serviceProblem(s.declared, fieldOf(first.kind), "AddressTaken",
			"%s belongs to Service %s, %s%s; give this Service %s of its own",
			what, holder.owner.name, why, andMore(others, "frontends"), own))
	}
	return out
}
