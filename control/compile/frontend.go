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
	aliasOf netip.Addr // see model.Frontend
	service *service
	offer   *offer
}

// frontend is an address, protocol and port, with every claim to it. See holder for who
// has it.
type frontend struct {
	key
	claims []*claim // by age of the Service
	live   bool     // counted among the VIPs: its whole address is a Service's

	id         uint32 // as published; 0: not published
	generation uint16
	owner      owner      // as published; zero: published by an earlier run
	keep       []*backend // as published, those that may keep its flows
	sources    sources    // as published
	dirty      bool
}

func (c *Compiler) frontend(k key) *frontend {
	f := c.frontends[k]
	if f == nil {
		f = &frontend{key: k}
		c.frontends[k] = f
	}
	return f
}

// link adds a claim, unlink takes it back.
func (c *Compiler) link(l *claim) {
	f := l.frontend
	i, _ := slices.BinarySearchFunc(f.claims, l, older)
	f.claims = slices.Insert(f.claims, i, l)
	c.balance(f)
	c.door(f)
	c.touchFrontend(f)
}

func (c *Compiler) unlink(l *claim) {
	f := l.frontend
	f.claims = slices.DeleteFunc(f.claims, func(o *claim) bool { return o == l })
	c.balance(f)
	c.door(f)
	c.touchFrontend(f)
}

// older orders claims by age of the Service, those of unknown age last, and by name.
func older(a, b *claim) int { return byAge(a.service.declared, b.service.declared) }

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

func (c *Compiler) touchFrontend(f *frontend) {
	if len(f.claims) > 1 {
		c.contested[f] = struct{}{}
	} else {
		delete(c.contested, f)
	}
	if slices.ContainsFunc(f.claims, c.barred) {
		c.refused[f] = struct{}{}
	} else {
		delete(c.refused, f)
	}
	if !f.dirty {
		f.dirty = true
		c.dirtyFrontends = append(c.dirtyFrontends, f)
	}
}

// settleFrontend brings what is published in line with what is wanted. Backends must be
// settled before; those that have left the frontend and serve on for others get another
// generation here, for their own record does not show it otherwise. Flows to the other
// backends of the frontend are not disturbed by that.
func (c *Compiler) settleFrontend(f *frontend, snapshot uint64) {
	f.dirty = false
	holder := c.holder(f)
	if holder == nil {
		if f.id != 0 {
			c.frontendIDs.put(f.id)
		}
		f.id, f.owner, f.keep, f.sources = 0, owner{}, nil, sources{}
		if len(f.claims) == 0 {
			delete(c.frontends, f.key)
		}
		return
	}
	switch {
	case f.id == 0:
		f.id = c.frontendIDs.take(f)
		f.generation = stamp(snapshot, f.generation)
	case f.owner != owner{} && f.owner != holder.service.owner, !f.sources.equal(holder.offer.sources):
		f.generation = stamp(snapshot, f.generation)
	default:
		for _, b := range left(f.keep, holder.offer.keep) {
			b.bump(snapshot)
		}
	}
	f.owner, f.keep, f.sources = holder.service.owner, holder.offer.keep, holder.offer.sources
}

// holder is the claim that has the frontend, nil if there is none that may. The claim of
// the present holder stands against all but those of Services that are older for certain;
// without one the first claim by age has it.
func (c *Compiler) holder(f *frontend) *claim {
	present := c.present(f)
	for _, l := range f.claims {
		switch {
		case c.excluded.service(l.service) || c.barred(l):
		case present == nil || l == present || knownOlder(l.service.declared, present.service.declared):
			return l
		}
	}
	return nil
}

// present is the claim that the last snapshot honours, nil if it is gone or there was
// none. A frontend of an earlier run does not say whose it was; it was that of the claim
// with which it shares the most backends, if any.
func (c *Compiler) present(f *frontend) (found *claim) {
	if f.id == 0 || len(f.claims) < 2 {
		return nil
	}
	most := 0
	for _, l := range f.claims {
		switch {
		case c.excluded.service(l.service) || c.barred(l):
		case f.owner == l.service.owner:
			return l
		case f.owner != owner{}:
		default:
			if n := shared(f.keep, l.offer.keep); n > most {
				found, most = l, n
			}
		}
	}
	return found
}

// shared counts what two sorted lists have in common.
func shared(a, b []*backend) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch order := a[0].compare(&b[0].key); {
		case order == 0:
			n++
			a, b = a[1:], b[1:]
		case order < 0:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return n
}

// left are the backends of before that are not among those of now and serve on
// nevertheless, for another Service.
func left(before, now []*backend) (out []*backend) {
	for _, b := range before {
		for len(now) > 0 && now[0].compare(&b.key) < 0 {
			now = now[1:]
		}
		if (len(now) == 0 || now[0] != b) && b.id != 0 && b.served {
			out = append(out, b)
		}
	}
	return out
}
