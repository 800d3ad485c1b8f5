package agent

import (
	"fmt"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// sockets is the Problem of a node whose processes do not reach its own node ports. A fast
// path of an earlier version says nothing of it.
func (o *observer) sockets(f *fastpathFile) []model.Problem {
	if f.Sockets == "" || f.Sockets == api.SocketsAttached {
		return nil
	}
	return []model.Problem{{
		Kind: "Node", Object: o.config.NodeName, Reason: "OwnNodePortsUnreached",
		Message: fmt.Sprintf("processes of this node do not reach its own node ports, everybody else does; it is tried again: %s", f.Sockets),
	}}
}
