package resolve

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
)

// number reads a port number; 0 is none.
func number(n int32) (uint16, bool) { return uint16(n), n > 0 && n < 1<<16 }

// protocol reads a protocol; left out it is TCP.
func protocol(p corev1.Protocol) (model.Protocol, bool) {
	switch p {
	case "", corev1.ProtocolTCP:
		return model.TCP, true
	case corev1.ProtocolUDP:
		return model.UDP, true
	case corev1.ProtocolSCTP:
		return model.SCTP, true
	}
	return 0, false
}

// servicePort is a valid port of a Service; index is its place in spec.ports.
type servicePort struct {
	model.ServicePort
	index int
}

type portKey struct {
	protocol model.Protocol
	port     uint16
}

// ports returns the ports of the Service that can be served. Of two ports that
// contradict each other the first one stands.
func ports(svc *corev1.Service, r *report) (out []servicePort) {
	names, numbers := map[string]bool{}, map[portKey]bool{}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		field := func(name string) string { return fmt.Sprintf("spec.ports[%d].%s", i, name) }
		port, ok := number(p.Port)
		if !ok {
			r.add(field("port"), "BadPort", "%d is no port number; write 1 to 65535", p.Port)
			continue
		}
		proto, ok := protocol(p.Protocol)
		if !ok {
			r.add(field("protocol"), "UnknownProtocol", "%q is not supported; write TCP, UDP or SCTP", p.Protocol)
			continue
		}
		key := portKey{proto, port}
		switch {
		case names[p.Name]:
			r.add(field("name"), "DuplicateName", "the name %q is used by an earlier port; endpoints are found by name, so give each port its own", p.Name)
			continue
		case numbers[key]:
			r.add(field("port"), "DuplicatePort", "%d/%s is an earlier port already; remove one of them", port, proto)
			continue
		}
		names[p.Name], numbers[key] = true, true
		s := servicePort{ServicePort: model.ServicePort{Name: p.Name, Protocol: proto, Port: port}, index: i}
		if s.NodePort, ok = number(p.NodePort); !ok && p.NodePort != 0 {
			s.NodePort = 0
			r.add(field("nodePort"), "BadPort", "%d is no port number; write 1 to 65535, or leave it out", p.NodePort)
		}
		out = append(out, s)
	}
	if len(svc.Spec.Ports) == 0 {
		r.add("spec.ports", "NoPorts", "the Service has no port, so nothing is served; add one")
	}
	return out
}
