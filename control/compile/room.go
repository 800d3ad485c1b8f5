package compile

import (
	"slices"

	"lace-cni.io/lace/control/model"
)

// room bounds the tables, counting every Service as if it shared nothing.
type room struct{ frontends, backends int }

func (c *Compiler) count(s *service, n int) {
	c.used.frontends += n * len(s.claims)
	c.used.backends += n * len(s.refs)
}

// exclusion is the Services for which there is no room. It is empty unless the tables
// are full.
type exclusion struct {
	services map[*service]bool
	kept     map[*backend]bool // backends of Services that are not excluded; nil: all
}

func (x *exclusion) service(s *service) bool { return x.services[s] }

func (x *exclusion) backend(b *backend) bool { return x.kept != nil && !x.kept[b] }

// makeRoom decides who is excluded: the youngest Services that do not fit. It looks at
// all Services only when the tables are full.
func (c *Compiler) makeRoom() {
	full := c.used.frontends > c.limit.frontends || c.used.backends > c.limit.backends
	if !full && c.excluded.kept == nil {
		return
	}
	c.excluded = exclusion{}
	if full {
		c.exclude()
	}
	for _, b := range c.backends {
		c.touchBackend(b)
	}
	for _, f := range c.frontends {
		c.touchFrontend(f)
	}
}

func (c *Compiler) exclude() {
	c.excluded = exclusion{services: map[*service]bool{}, kept: map[*backend]bool{}}
	var used room
	for _, s := range c.byAge() {
		f, b := used.frontends+len(s.claims), used.backends+len(s.refs)
		if f > c.limit.frontends || b > c.limit.backends {
			c.excluded.services[s] = true
			continue
		}
		used = room{f, b}
		for _, r := range s.refs {
			c.excluded.kept[r.backend] = true
		}
	}
}

func (c *Compiler) byAge() []*service {
	out := make([]*service, 0, len(c.services))
	for _, s := range c.services {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *service) int { return byAge(a.declared, b.declared) })
	return out
}

func (c *Compiler) roomProblems() (out []model.Problem) {
	for s := range c.excluded.services {
		if f, b := len(s.claims), len(s.refs); f > c.limit.frontends || b > c.limit.backends {
			out = append(out, serviceProblem(s.declared, "", "TableFull",
				"not programmed: it alone has %d frontends and %d backends, and the tables have room for %d and %d; split it into several",
				f, b, c.limit.frontends, c.limit.backends))
			continue
		}
		out = append(out, serviceProblem(s.declared, "", "TableFull",
			"not programmed: the tables have room for %d frontends and %d backends, and Services that come before it by age and name fill them; remove Services, or spread them over clusters",
			c.limit.frontends, c.limit.backends))
	}
	return out
}
