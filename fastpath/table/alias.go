package table

import "fmt"

// checkAliases proves that every alias stands for a frontend that differs from it in the
// address alone, so that sockets can be sent from one to the other.
func (s *Snapshot) checkAliases() error {
	for i := range s.frontends {
		f := &s.frontends[i]
		if f.AliasOf == 0 {
			continue
		}
		of := s.FrontendByID(f.AliasOf)
		switch {
		case of == nil:
			return fmt.Errorf("%v: is an alias of id %d, which is not among the frontends", f, f.AliasOf)
		case of.AliasOf != 0:
			return fmt.Errorf("%v: is an alias of %v, which is one itself", f, of)
		case f.Flags&Narrow == 0:
			return fmt.Errorf("%v: is an alias and takes the whole of its address", f)
		case f.Network != of.Network || f.Port != of.Port || f.Protocol != of.Protocol || f.Addr.Is4() != of.Addr.Is4():
			return fmt.Errorf("%v: is an alias of %v, from which it differs in more than its address", f, of)
		}
	}
	return nil
}

// Aliases calls visit with every alias and the frontend for which it stands.
func (s *Snapshot) Aliases(visit func(alias, of *Frontend)) {
	for i := range s.frontends {
		if f := &s.frontends[i]; f.AliasOf != 0 {
			visit(f, s.FrontendByID(f.AliasOf))
		}
	}
}
