package dataplane

import (
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp"
)

// Attached is what Status says of sockets when their programs are in place.
const Attached = "attached"

// aliases lists where the node's own sockets are sent.
func aliases(s *table.Snapshot) (out []xdp.Alias) {
	s.Aliases(func(alias, of *table.Frontend) {
		if of.Network == 0 { // the node's own
			out = append(out, xdp.Alias{Own: of.Addr, Alias: alias.Addr, Protocol: of.Protocol, Port: of.Port})
		}
	})
	return out
}

// sockets attaches the programs of the node's own sockets, or puts back what somebody took
// away. That they cannot be attached costs the node its own node ports and nothing else: it
// is said once, shown in fastpath.json, and tried again with every audit.
func (a *audit) sockets() error {
	n := a.node
	state, err := Attached, n.objects.AttachSockets()
	if err != nil {
		state = err.Error()
	}
	if n.status.Sockets == state {
		return nil
	}
	before, next := n.status.Sockets, n.status
	next.Sockets = state
	if err := next.write(n.config.StateDir); err != nil {
		return err
	}
	n.status = next
	switch {
	case err != nil:
		n.config.Log.Error("processes of this node do not reach its own node ports, trying again twice a second", "error", err)
	case before != "":
		n.config.Log.Info("processes of this node reach its own node ports again")
	}
	return nil
}
