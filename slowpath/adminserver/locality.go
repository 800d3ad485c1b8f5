package adminserver

import (
	"fmt"
	"net"
	"strconv"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
)

// locality knows which endpoints are on this node, and to which of them nothing leads.
type locality struct {
	node     string
	pathless func(*model.Endpoint) bool
}

func locally(state *publish.State) *locality {
	return &locality{state.Node.Name, resolve.Pathless(state.Node.Name, &state.Attachments)}
}

func (l *locality) has(e *model.Endpoint) bool { return l.node != "" && e.Node == l.node }

func (l *locality) endpoint(e *model.Endpoint) api.Endpoint {
	return api.Endpoint{
		Address: e.Addr.String(), Port: e.Port, Node: e.Node, Zone: e.Zone, Pod: e.Pod,
		Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Local: l.has(e), NoPort: l.pathless(e),
	}
}

// noteNoPort says that endpoints which may be chosen have no way on this node.
func noteNoPort(out *api.Explanation) {
	if out.Eligible == nil {
		return
	}
	first, n := "", 0
	for i := range out.Eligible.Endpoints {
		if e := &out.Eligible.Endpoints[i]; e.NoPort {
			if n++; n == 1 {
				first = net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port)))
			}
		}
	}
	if n == 0 {
		return
	}
	out.Notes = append(out.Notes, fmt.Sprintf("%d of the endpoints that may be chosen (no-port, %s the first) are on this node, and none of its ports has their address: what is sent there goes where the node's routes lead and is lost; see that the pod's device is up and a route leads to it", n, first))
}
