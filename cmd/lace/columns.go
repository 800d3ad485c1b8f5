package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// figure writes a whole number.
func figure[N ~int | ~uint16 | ~uint32 | ~uint64](n N) string { return fmt.Sprint(n) }

func yes(b bool) string { return strconv.FormatBool(b) }

// servicePort is one line of the table of Services.
type servicePort struct {
	service api.Service
	port    api.ServicePort
}

// servicePorts gives a line to each port: people look for ports, and a Service's policies
// repeat cheaply.
func servicePorts(list []api.Service) (out []servicePort) {
	for _, s := range list {
		for _, p := range s.Ports {
			out = append(out, servicePort{s, p})
		}
	}
	return out
}

func (s servicePort) name() string {
	text := fmt.Sprintf("%d/%s", s.port.Port, s.port.Protocol)
	if s.port.Name != "" {
		text = s.port.Name + ":" + text
	}
	return text
}

func (s servicePort) addresses() string {
	var out []string
	for _, f := range s.port.Frontends {
		if f.Served {
			out = append(out, s.address(f))
		}
	}
	return strings.Join(out, ",")
}

// notServed are the addresses that the Service asks for and Lace does not carry for it, with
// their kinds and with who has them instead, or why nobody has.
func (s servicePort) notServed() string {
	var out []string
	for _, f := range s.port.Frontends {
		if !f.Served {
			text := f.Kind + " " + s.address(f)
			if f.Holder != "" {
				text += " (of " + f.Holder + ")"
			}
			if f.Why != "" {
				text += " (" + f.Why + ")"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ",")
}

// address leaves the port out where the column PORT says it. Of a node it is always there: the
// rest of the address is not the Service's.
func (s servicePort) address(f api.Frontend) string {
	if f.Port == s.port.Port && f.Kind != model.NodePort.String() {
		return f.Address
	}
	if f.Address == "" {
		return figure(f.Port)
	}
	return net.JoinHostPort(f.Address, figure(f.Port))
}

func (s servicePort) kinds() string {
	var out []string
	for _, f := range s.port.Frontends {
		if f.Served && (len(out) == 0 || out[len(out)-1] != f.Kind) {
			out = append(out, f.Kind)
		}
	}
	return strings.Join(out, ",")
}

// outside says what clients outside the cluster get at the other addresses than the
// ClusterIP: how many endpoints, and which rule chose them.
func (s servicePort) outside() string {
	return s.perFamily(func(f api.Family) string {
		if f.External.Tier == "" {
			return "-"
		}
		return fmt.Sprintf("%d %s", len(f.External.Endpoints), f.External.Tier)
	})
}

func (s servicePort) affinity() string {
	if s.service.Affinity == 0 {
		return ""
	}
	return (time.Duration(s.service.Affinity) * time.Second).String()
}

func (s servicePort) health() string {
	if s.service.HealthPort == 0 {
		return ""
	}
	return figure(s.service.HealthPort)
}

// perFamily joins a fact about each family.
func (s servicePort) perFamily(fact func(api.Family) string) string {
	var out []string
	for _, f := range s.port.Families {
		out = append(out, fact(f))
	}
	return strings.Join(out, ",")
}

var serviceColumns = []screen.Column[servicePort]{
	{Title: "NAMESPACE", Value: func(s servicePort) string { return s.service.Namespace }},
	{Title: "SERVICE", Value: func(s servicePort) string { return s.service.Name }},
	{Title: "PORT", Value: servicePort.name},
	{Title: "ADDRESSES", Value: servicePort.addresses},
	{Title: "KIND", Wide: true, Value: servicePort.kinds},
	{Title: "USED/ENDPOINTS", Value: func(s servicePort) string {
		return s.perFamily(func(f api.Family) string {
			used, all := len(f.Internal.Endpoints), len(f.Internal.Endpoints)+len(f.Internal.Excluded)
			return fmt.Sprintf("%d/%d", used, all)
		})
	}},
	{Title: "CHOSEN-BY", Value: func(s servicePort) string {
		return s.perFamily(func(f api.Family) string { return f.Internal.Tier })
	}},
	{Title: "ELIGIBLE", Wide: true, Value: func(s servicePort) string {
		return s.perFamily(func(f api.Family) string { return dashed(eligibleNames(&f.Internal)) })
	}},
	{Title: "OUT", Wide: true, Value: func(s servicePort) string {
		return s.perFamily(func(f api.Family) string { return dashed(excludedCounts(&f.Internal)) })
	}},
	{Title: "OUTSIDE", Wide: true, Value: servicePort.outside},
	{Title: "OUTSIDE-ELIGIBLE", Wide: true, Value: func(s servicePort) string {
		return s.perFamily(func(f api.Family) string { return dashed(eligibleNames(&f.External)) })
	}},
	{Title: "OUTSIDE-OUT", Wide: true, Value: func(s servicePort) string {
		return s.perFamily(func(f api.Family) string { return dashed(excludedCounts(&f.External)) })
	}},
	{Title: "INTERNAL", Wide: true, Value: func(s servicePort) string { return s.service.InternalPolicy }},
	{Title: "EXTERNAL", Wide: true, Value: func(s servicePort) string { return s.service.ExternalPolicy }},
	{Title: "AFFINITY", Wide: true, Value: servicePort.affinity},
	{Title: "SOURCES", Wide: true, Value: func(s servicePort) string { return strings.Join(s.service.Sources, ",") }},
	{Title: "HEALTH-PORT", Wide: true, Value: servicePort.health},
	{Title: "NETWORK", Wide: true, Value: func(s servicePort) string { return figure(s.service.Network) }},
	{Title: "NOT-SERVED", Wide: true, Value: servicePort.notServed},
}

// useBy says whether some clients use an endpoint, or why not.
func useBy(u *api.Use) string {
	switch {
	case u == nil:
		return ""
	case u.Used:
		return yes(true)
	}
	return u.Why
}

// dashed shows that a part of a cell is empty.
func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

var backendColumns = []screen.Column[api.Backend]{
	{Title: "NAMESPACE", Value: func(b api.Backend) string { return b.Namespace }},
	{Title: "SERVICE", Value: func(b api.Backend) string { return b.Service }},
	{Title: "PORT", Value: func(b api.Backend) string { return b.Port }},
	{Title: "POD", Value: func(b api.Backend) string { return b.Pod }},
	{Title: "ADDRESS", Value: func(b api.Backend) string { return b.Address }},
	{Title: "TARGET", Right: true, Value: func(b api.Backend) string { return figure(b.TargetPort) }},
	{Title: "NODE", Value: func(b api.Backend) string { return b.Node }},
	{Title: "USED", Value: func(b api.Backend) string { return yes(b.Used) }},
	{Title: "FLOWS", Right: true, Value: func(b api.Backend) string { return figure(b.Flows) }},
	{Title: "WHY-NOT", Value: func(b api.Backend) string { return cmp.Or(b.Why, portless(b.NoPort)) }},
	{Title: "OUTSIDE", Wide: true, Value: func(b api.Backend) string { return useBy(b.Outside) }},
	{Title: "ZONE", Wide: true, Value: func(b api.Backend) string { return b.Zone }},
	{Title: "READY", Wide: true, Value: func(b api.Backend) string { return yes(b.Ready) }},
	{Title: "SERVING", Wide: true, Value: func(b api.Backend) string { return yes(b.Serving) }},
	{Title: "TERMINATING", Wide: true, Value: func(b api.Backend) string { return yes(b.Terminating) }},
	{Title: "NETWORK", Wide: true, Value: func(b api.Backend) string { return figure(b.Network) }},
}

var flowColumns = []screen.Column[api.Flow]{
	{Title: "PROTO", Value: func(f api.Flow) string { return f.Protocol }},
	{Title: "CLIENT", Value: func(f api.Flow) string { return f.Client }},
	{Title: "FRONTEND", Value: func(f api.Flow) string { return f.Frontend }},
	{Title: "BACKEND", Value: func(f api.Flow) string { return f.Backend }},
	{Title: "STATE", Value: func(f api.Flow) string { return f.State }},
	{Title: "MOVED-BY", Value: func(f api.Flow) string { return f.Mode }},
	{Title: "IDLE", Right: true, Value: func(f api.Flow) string {
		return time.Duration(f.Idle * float64(time.Second)).Round(100 * time.Millisecond).String()
	}},
	{Title: "SERVICE", Wide: true, Value: func(f api.Flow) string { return f.Service }},
	{Title: "POD", Wide: true, Value: func(f api.Flow) string { return f.Pod }},
	{Title: "SEEN-AS", Wide: true, Value: func(f api.Flow) string { return f.Source }},
	{Title: "NETWORK", Wide: true, Value: func(f api.Flow) string { return figure(f.Network) }},
}

var dropColumns = []screen.Column[api.Drop]{
	{Title: "REASON", Value: func(d api.Drop) string { return d.Reason }},
	{Title: "CLASS", Value: func(d api.Drop) string { return d.Class }},
	{Title: "WHERE", Value: func(d api.Drop) string { return d.Where }},
	{Title: "PACKETS", Right: true, Value: func(d api.Drop) string { return figure(d.Packets) }},
	{Title: "BYTES", Right: true, Value: func(d api.Drop) string { return figure(d.Bytes) }},
	{Title: "MEANING", Wide: true, Value: func(d api.Drop) string { return d.Help }},
}

var portColumns = []screen.Column[api.Port]{
	{Title: "ID", Right: true, Value: func(p api.Port) string { return figure(p.ID) }},
	{Title: "KIND", Value: func(p api.Port) string { return p.Kind }},
	{Title: "DEVICE", Value: func(p api.Port) string { return p.Device }},
	{Title: "MTU", Right: true, Value: func(p api.Port) string { return figure(p.MTU) }},
	{Title: "ADDRESSES", Value: func(p api.Port) string { return strings.Join(p.Addresses, ",") }},
	{Title: "FLOWS", Right: true, Value: func(p api.Port) string { return figure(p.Flows) }},
	{Title: "POLICED", Right: true, Value: func(p api.Port) string { return figure(p.Policed) }},
	{Title: "PEER-MAC", Value: func(p api.Port) string { return p.PeerMAC }},
	{Title: "HOST-MAC", Wide: true, Value: func(p api.Port) string { return p.HostMAC }},
	{Title: "INDEX", Wide: true, Right: true, Value: func(p api.Port) string { return figure(p.Index) }},
	{Title: "ROUTES", Wide: true, Value: func(p api.Port) string { return strings.Join(p.Routes, ",") }},
	{Title: "NETWORK", Wide: true, Value: func(p api.Port) string { return figure(p.Network) }},
}

var problemColumns = []screen.Column[api.Problem]{
	{Title: "KIND", Value: func(p api.Problem) string { return p.Kind }},
	{Title: "OBJECT", Value: func(p api.Problem) string { return p.Object }},
	{Title: "FIELD", Value: func(p api.Problem) string { return p.Field }},
	{Title: "REASON", Value: func(p api.Problem) string { return p.Reason }},
	{Title: "PLACE", Rare: true, Value: func(p api.Problem) string { return p.Place.String() }},
	{Title: "MESSAGE", Value: func(p api.Problem) string { return p.Message }},
}
