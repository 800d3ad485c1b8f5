package compile

import "slices"

// frontend is an address, protocol and port, with every claim to it. See award for who
// has it.
type frontend struct {
	key
	claims queue
	holder *claim // as of the last snapshot
	live   bool   // counted among the VIPs: its whole address is a Service's

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

// touchFrontend has a frontend settled with the next snapshot. It looks at no claim, so that it
// costs the same however many there are.
func (c *Compiler) touchFrontend(f *frontend) {
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
	defer c.weigh(f)
	holder := f.holder
	if holder == nil {
		if f.id != 0 {
			c.frontendIDs.put(f.id)
		}
		f.id, f.owner, f.keep, f.sources = 0, owner{}, nil, sources{}
		if f.claims.len() == 0 {
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

// award finds the claim that has the frontend, nil if there is none that may. The claim of
// the present holder stands against all but those of Services that are older for certain;
// without one the first claim by age has it. It looks at all claims, so that it is done once
// for each snapshot that something has changed for; to publish the outcome does not change it.
func (c *Compiler) award(f *frontend) *claim {
	present := c.present(f)
	for _, l := range f.claims.inOrder() {
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
	if f.id == 0 || f.claims.len() < 2 {
		return nil
	}
	most := 0
	for _, l := range f.claims.inOrder() {
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
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, x := range a {
		i, found := slices.BinarySearchFunc(b, x, func(y, x *backend) int { return y.compare(&x.key) })
		if b = b[i:]; found {
			n++
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
