package compile

import (
	"cmp"
	"net/netip"
	"slices"

	"lace-cni.io/lace/control/model"
)

// owner tells Services apart, also two of the same name one after the other.
type owner struct {
	name model.Name
	uid  string
}

// claim is a Service port's wish for a frontend.
type claim struct {
	*frontend
	kind    model.FrontendKind
	gone    bool       // taken back
	turn    int32      // among those of its Service
	aliasOf netip.Addr // see model.Frontend
	service *service
	offer   *offer
}

// link adds a claim, unlink takes it back.
func (c *Compiler) link(l *claim) {
	f := l.frontend
	f.claims.add(l)
	c.balance(f)
	c.door(f)
	c.touchFrontend(f)
}

func (c *Compiler) unlink(l *claim) {
	f := l.frontend
	f.claims.remove(l)
	c.balance(f)
	c.door(f)
	c.touchFrontend(f)
}

// queue is the claims to one frontend. However many Services want the same, to add one or to
// take it back costs the same; they are put in order when somebody asks.
type queue struct {
	all     []*claim
	ordered int32 // so many of all, from the first on, are in order
	gone    int32 // so many of all are taken back

	nodePorts, balanced int32 // so many are of that kind
}

func (q *queue) len() int { return len(q.all) - int(q.gone) }

func (q *queue) add(l *claim) {
	q.all = append(q.all, l)
	q.tally(l.kind, 1)
}

// remove takes a claim back. It sweeps when half of them are gone, so that none is looked at
// more than twice.
func (q *queue) remove(l *claim) {
	l.gone = true
	q.gone++
	q.tally(l.kind, -1)
	if q.len() < int(q.gone) {
		q.sweep()
	}
}

func (q *queue) tally(k model.FrontendKind, n int32) {
	switch k {
	case model.NodePort:
		q.nodePorts += n
	case model.LoadBalancer:
		q.balanced += n
	}
}

func (q *queue) sweep() {
	if q.gone == 0 {
		return
	}
	kept, ordered := q.all[:0], q.ordered
	for i, l := range q.all {
		switch {
		case !l.gone:
			kept = append(kept, l)
		case i < int(q.ordered):
			ordered--
		}
	}
	clear(q.all[len(kept):])
	q.all, q.ordered, q.gone = kept, ordered, 0
}

// inOrder are the claims by age of the Service.
func (q *queue) inOrder() []*claim {
	q.sweep()
	if before, more := q.all[:q.ordered], q.all[q.ordered:]; len(more) > 0 {
		slices.SortFunc(more, older)
		if len(before) > 0 && older(before[len(before)-1], more[0]) > 0 {
			q.all = merge(before, more, older)
		}
		q.ordered = int32(len(q.all))
	}
	return q.all
}

// merge makes one sorted list of two.
func merge[T any](a, b []T, compare func(a, b T) int) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(b[0], a[0]) < 0 {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}

// older orders claims by age of the Service, those of unknown age last, and by name; of one
// Service the last comes first.
func older(a, b *claim) int {
	return cmp.Or(byAge(a.service.declared, b.service.declared), cmp.Compare(b.turn, a.turn))
}

func byAge(a, b *model.Service) int {
	switch unknown := a.Created.IsZero(); {
	case unknown == b.Created.IsZero():
		return cmp.Or(a.Created.Compare(b.Created), a.Name.Compare(b.Name))
	case unknown:
		return 1
	}
	return -1
}

// knownOlder reports whether a is older than b for certain.
func knownOlder(a, b *model.Service) bool {
	return !a.Created.IsZero() && a.Created.Before(b.Created)
}
