package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/slowpath/publish"
)

// pathlessEvery is how often endpoints of this node are looked at. A look takes what was
// published as it is, and asks the kernel only of endpoints that are told of.
const pathlessEvery = 2 * time.Second

// pathlessFor is how long an endpoint must have had no way before that is told: the device of a
// pod that is deleted goes before its EndpointSlice says so.
const pathlessFor = 10 * time.Second

// pathlessWatch notices endpoints of this node that are chosen and that nothing of the node
// leads to. It only tells: they are chosen as kube-proxy chooses them.
type pathlessWatch struct {
	node     string
	stack    netdev.Stack
	now      func() time.Time
	standing standing

	last  *publish.State
	all   []stranded // of last
	since map[stranded]time.Time
}

// stranded is an endpoint of a Service to which nothing leads.
type stranded struct {
	service model.Name
	at      netip.AddrPort
	pod     string
}

func (s stranded) compare(o stranded) int {
	return cmp.Or(s.service.Compare(o.service), s.at.Compare(o.at), cmp.Compare(s.pod, o.pod))
}

func newPathlessWatch(c *Config) *pathlessWatch {
	return &pathlessWatch{node: c.NodeName, stack: c.Stack, now: time.Now, standing: standing{changed: func() {}}}
}

// run looks every few seconds until ctx ends.
func (w *pathlessWatch) run(ctx context.Context, state func() *publish.State) error {
	return w.standing.keep(ctx, pathlessEvery, func() []model.Problem { return w.look(state()) })
}

// found are the Problems of the last look.
func (w *pathlessWatch) found() []model.Problem {
	if w == nil {
		return nil
	}
	return w.standing.found()
}

// look notes since when each endpoint has had no way, and tells of those that have had none
// for long enough: one Problem for each Service.
func (w *pathlessWatch) look(s *publish.State) (out []model.Problem) {
	if s != w.last {
		w.last, w.all = s, strandedOf(w.node, s)
	}
	now, since := w.now(), make(map[stranded]time.Time, len(w.all))
	var lasting []stranded
	for _, e := range w.all {
		began, known := w.since[e]
		if !known {
			began = now
		}
		since[e] = began
		if now.Sub(began) >= pathlessFor {
			lasting = append(lasting, e)
		}
	}
	w.since = since
	lasting = slices.DeleteFunc(lasting, w.answering())
	for len(lasting) > 0 {
		n := 1
		for n < len(lasting) && lasting[n].service == lasting[0].service {
			n++
		}
		out = append(out, pathless(lasting[0], n-1))
		lasting = lasting[n:]
	}
	return out
}

func pathless(e stranded, more int) model.Problem {
	pod, others := "", ""
	if e.pod != "" {
		pod = " (pod " + e.pod + ")"
	}
	if more > 0 {
		others = fmt.Sprintf(" (and %d more of its endpoints)", more)
	}
	return model.Problem{Kind: "Service", Object: e.service.String(), Reason: "EndpointWithoutPort", Message: fmt.Sprintf(
		"endpoint %s%s is on this node, and none of its ports has the address%s: it is chosen as ever, and what is sent there goes where the node's routes lead and is lost; see that the pod's device is there and up and that a route leads to the address (lace get ports, ip route get %s), or correct the EndpointSlice",
		e.at, pod, others, e.at.Addr())}
}

// answering says whether an address has shown itself on the link to which the node's routes
// lead, behind a device that is no port. The neighbours are read when the first one is asked for.
func (w *pathlessWatch) answering() func(stranded) bool {
	type place struct {
		device int
		addr   netip.Addr
	}
	var there map[place]bool
	return func(e stranded) bool {
		if there == nil {
			there = map[place]bool{}
			neighbours, _ := w.stack.Neighbours() // unread, nobody has been seen
			for _, n := range neighbours {
				there[place{n.Device, n.Addr}] = n.MAC != netdev.MAC{}
			}
		}
		r, err := w.stack.RouteTo(e.at.Addr())
		return err == nil && !r.Gateway.IsValid() && there[place{r.Device, e.at.Addr()}]
	}
}

// strandedOf are the endpoints without a way that some client may get, sorted, each once.
// Those with the address of a Service are offered to nobody, which is told elsewhere.
func strandedOf(node string, s *publish.State) (out []stranded) {
	if s == nil {
		return nil
	}
	lost := resolve.Pathless(node, &s.Attachments)
	for _, svc := range s.Services {
		for i := range svc.Ports {
			for _, c := range svc.Ports[i].Families {
				for j := range c.Endpoints {
					if e := &c.Endpoints[j]; lost(e) && chosen(&c, e) && !hasAddress(s.Services, e.Addr) {
						out = append(out, stranded{svc.Name, netip.AddrPortFrom(e.Addr, e.Port), e.Pod})
					}
				}
			}
		}
	}
	slices.SortFunc(out, stranded.compare)
	return slices.Compact(out)
}

// chosen says whether any clients get the endpoint.
func chosen(c *model.FamilyChoice, e *model.Endpoint) bool {
	for _, of := range []*model.Choice{&c.Internal, &c.External, &c.Cluster} {
		for i := range of.Endpoints {
			if of.Endpoints[i].Addr == e.Addr && of.Endpoints[i].Port == e.Port {
				return true
			}
		}
	}
	return false
}

// hasAddress says whether an address is one of a Service.
func hasAddress(services []*model.Service, a netip.Addr) bool {
	for _, svc := range services {
		for i := range svc.Ports {
			if slices.ContainsFunc(svc.Ports[i].Frontends, func(f model.Frontend) bool { return f.Addr == a }) {
				return true
			}
		}
	}
	return false
}
