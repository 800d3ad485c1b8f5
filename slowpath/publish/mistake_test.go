package publish_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"lace-cni.io/lace/slowpath/source/dir"
)

// rightService is one as an API server has it, every field filled in, in a namespace of its
// own.
type rightService struct {
	namespace string
	text      string
}

const rightMeta = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s, creationTimestamp: "1990-01-01T00:00:00Z", annotations: {lace-cni.io/traffic-distribution: PreferClosest}}
`

const rightSlices = `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: %[1]s, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}, {name: dns, port: 5353, protocol: UDP}]
endpoints: [{addresses: [10.244.%[2]d.5], nodeName: n1}, {addresses: [10.244.%[2]d.6], nodeName: n2}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-2, namespace: %[1]s, labels: {kubernetes.io/service-name: web}}
addressType: IPv6
ports: [{name: http, port: 8080, protocol: TCP}, {name: dns, port: 5353, protocol: UDP}]
endpoints: [{addresses: ['fd00:10:244:%[2]d::5'], nodeName: n1}, {addresses: ['fd00:10:244:%[2]d::6'], nodeName: n2}]
`

// rightServices are one of each type, and one of one family.
var rightServices = []rightService{
	{"cluster", `spec: {type: ClusterIP, clusterIP: 10.96.0.11, clusterIPs: [10.96.0.11, 'fd00:10:96::11'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack,
 internalTrafficPolicy: Cluster, sessionAffinity: None, trafficDistribution: PreferSameZone,
 ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}, {name: dns, port: 53, protocol: UDP, targetPort: 5353}]}
`},
	{"node", `spec: {type: NodePort, clusterIP: 10.96.0.12, clusterIPs: [10.96.0.12, 'fd00:10:96::12'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack,
 internalTrafficPolicy: Local, externalTrafficPolicy: Local, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}},
 externalIPs: [192.0.2.112, '2001:db8::112'],
 ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30012}, {name: dns, port: 53, protocol: UDP, targetPort: 5353, nodePort: 30112}]}
`},
	{"balanced", `spec: {type: LoadBalancer, clusterIP: 10.96.0.13, clusterIPs: [10.96.0.13, 'fd00:10:96::13'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack,
 internalTrafficPolicy: Cluster, externalTrafficPolicy: Local, healthCheckNodePort: 30213, allocateLoadBalancerNodePorts: true, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}},
 externalIPs: [192.0.2.113, '2001:db8::113'], loadBalancerSourceRanges: [192.0.2.0/24, '2001:db8::/32'],
 ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30013}, {name: dns, port: 53, protocol: UDP, targetPort: 5353, nodePort: 30113}]}
status: {loadBalancer: {ingress: [{ip: 198.51.100.13, ipMode: VIP}, {ip: '2001:db8:1::13', ipMode: VIP}]}}
`},
	{"single", `spec: {type: ClusterIP, clusterIP: 10.96.0.14, clusterIPs: [10.96.0.14], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, sessionAffinity: None,
 ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}, {name: dns, port: 53, protocol: UDP, targetPort: 5353}]}
`},
}

// objects of one Service: it, and a slice for each family.
type objects struct {
	service *corev1.Service
	slices  [2]*discoveryv1.EndpointSlice
}

// decode reads right Service number i.
func (r *rightService) decode(i int) (o objects) {
	read, problems := dir.Decode("f.yaml", fmt.Appendf(nil, rightMeta+r.text+rightSlices, r.namespace, i+1))
	if len(problems) > 0 || len(read) != 3 {
		panic(fmt.Sprintf("%d objects are read, %v", len(read), problems))
	}
	o.service = read[0].Object.(*corev1.Service)
	o.slices = [2]*discoveryv1.EndpointSlice{read[1].Object.(*discoveryv1.EndpointSlice), read[2].Object.(*discoveryv1.EndpointSlice)}
	if len(o.service.Spec.ClusterIPs) == 1 {
		o.slices[1] = nil
	}
	return o
}

// spoiled is what nobody takes for right: text with something before it, a number that is no
// port's.
type spoiled struct {
	word   string
	number int32
}

func spoil(text string, number int32) spoiled {
	s := spoiled{"?" + strings.ToValidUTF8(text, "?"), number}
	if s.number > 0 && s.number < 1<<16 {
		s.number = -s.number
	}
	return s
}

// portNumber is one that is out of range and does not stand for a field that is left out.
func (s spoiled) portNumber() int32 {
	if s.number == 0 {
		return 1 << 16
	}
	return s.number
}

// mistake is one slip in a Service or a slice of it. make says whether there is a place for it,
// and which object bears it.
type mistake struct {
	name string
	make func(o *objects, with spoiled) (there bool)
	in   int // 0: the Service, 1 or 2: a slice
}

func inService(name string, make func(*corev1.Service, spoiled) bool) mistake {
	return mistake{name, func(o *objects, s spoiled) bool { return make(o.service, s) }, 0}
}

// always is a mistake that every Service can bear.
func always(name string, make func(*corev1.ServiceSpec, spoiled)) mistake {
	return inService(name, func(svc *corev1.Service, s spoiled) bool { make(&svc.Spec, s); return true })
}

func external(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeClusterIP }

func ptr[T any](v T) *T { return &v }

var serviceMistakes = []mistake{
	always("its address is none", func(s *corev1.ServiceSpec, with spoiled) { s.ClusterIP, s.ClusterIPs[0] = with.word, with.word }),
	inService("its second address is none", func(svc *corev1.Service, with spoiled) bool {
		if len(svc.Spec.ClusterIPs) < 2 {
			return false
		}
		svc.Spec.ClusterIPs[1] = with.word
		return true
	}),
	always("its addresses contradict each other", func(s *corev1.ServiceSpec, with spoiled) { s.ClusterIP = with.word }),
	always("it has no port", func(s *corev1.ServiceSpec, _ spoiled) { s.Ports = nil }),
	always("a port is out of range", func(s *corev1.ServiceSpec, with spoiled) { s.Ports[0].Port = with.number }),
	always("the other port is out of range", func(s *corev1.ServiceSpec, with spoiled) { s.Ports[1].Port = with.number }),
	always("a protocol is unknown", func(s *corev1.ServiceSpec, with spoiled) { s.Ports[1].Protocol = corev1.Protocol(with.word) }),
	always("a name is there twice", func(s *corev1.ServiceSpec, _ spoiled) { s.Ports[1].Name = s.Ports[0].Name }),
	always("a port is there twice", func(s *corev1.ServiceSpec, _ spoiled) {
		s.Ports[1].Port, s.Ports[1].Protocol = s.Ports[0].Port, s.Ports[0].Protocol
	}),
	always("its type is unknown", func(s *corev1.ServiceSpec, with spoiled) { s.Type = corev1.ServiceType(with.word) }),
	always("its internal policy is unknown", func(s *corev1.ServiceSpec, with spoiled) {
		s.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicy(with.word))
	}),
	always("its external policy is unknown", func(s *corev1.ServiceSpec, with spoiled) {
		s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicy(with.word)
	}),
	always("its affinity is unknown", func(s *corev1.ServiceSpec, with spoiled) { s.SessionAffinity = corev1.ServiceAffinity(with.word) }),
	inService("the time of its affinity is out of range", func(svc *corev1.Service, with spoiled) bool {
		if svc.Spec.SessionAffinityConfig == nil {
			return false
		}
		n := with.number
		if n > 0 && n <= 86400 {
			n += 86400
		}
		svc.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds = &n
		return true
	}),
	always("a family is unknown", func(s *corev1.ServiceSpec, with spoiled) { s.IPFamilies[0] = corev1.IPFamily(with.word) }),
	always("its last family is unknown", func(s *corev1.ServiceSpec, with spoiled) {
		s.IPFamilies[len(s.IPFamilies)-1] = corev1.IPFamily(with.word)
	}),
	always("its family policy is unknown", func(s *corev1.ServiceSpec, with spoiled) { s.IPFamilyPolicy = ptr(corev1.IPFamilyPolicy(with.word)) }),
	always("its distribution is unknown", func(s *corev1.ServiceSpec, with spoiled) { s.TrafficDistribution = ptr(with.word) }),
	inService("its annotation is unknown", func(svc *corev1.Service, with spoiled) bool {
		svc.Annotations["lace-cni.io/traffic-distribution"] = with.word
		return true
	}),
	always("its health check port is out of range", func(s *corev1.ServiceSpec, with spoiled) { s.HealthCheckNodePort = with.portNumber() }),
	inService("a node port is out of range", func(svc *corev1.Service, with spoiled) bool {
		svc.Spec.Ports[1].NodePort = with.portNumber()
		return true
	}),
	inService("a node port is there twice", func(svc *corev1.Service, _ spoiled) bool {
		p := svc.Spec.Ports
		p[1].NodePort, p[1].Protocol, p[1].Port = p[0].NodePort, p[0].Protocol, 81
		return external(svc)
	}),
	inService("it has a node port and no type for it", func(svc *corev1.Service, _ spoiled) bool {
		svc.Spec.Ports[0].NodePort = 30999
		return !external(svc)
	}),
	inService("an external address is none", func(svc *corev1.Service, with spoiled) bool {
		svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, with.word)
		return true
	}),
	inService("a balancer's address is none", func(svc *corev1.Service, with spoiled) bool {
		in := svc.Status.LoadBalancer.Ingress
		if len(in) == 0 {
			return false
		}
		in[0].IP = with.word
		return true
	}),
	inService("a balancer's mode is unknown", func(svc *corev1.Service, with spoiled) bool {
		in := svc.Status.LoadBalancer.Ingress
		if len(in) == 0 {
			return false
		}
		in[1].IPMode = ptr(corev1.LoadBalancerIPMode(with.word))
		return true
	}),
	inService("a source range is none", func(svc *corev1.Service, with spoiled) bool {
		r := svc.Spec.LoadBalancerSourceRanges
		if len(r) == 0 {
			return false
		}
		r[0] = with.word
		return true
	}),
}

// inSlice is a mistake in a slice of each family that the Service has.
func inSlice(name string, make func(*discoveryv1.EndpointSlice, spoiled)) (out []mistake) {
	for i := range 2 {
		out = append(out, mistake{fmt.Sprintf("%s, IPv%d", name, 4+2*i), func(o *objects, s spoiled) bool {
			if o.slices[i] == nil {
				return false
			}
			make(o.slices[i], s)
			return true
		}, i + 1})
	}
	return out
}

// sliceMistakes are the mistakes of slices.
func sliceMistakes() (out []mistake) {
	add := func(name string, make func(*discoveryv1.EndpointSlice, spoiled)) {
		out = append(out, inSlice(name, make)...)
	}
	add("an endpoint has no address", func(s *discoveryv1.EndpointSlice, _ spoiled) { s.Endpoints[0].Addresses = nil })
	add("an endpoint's address is none", func(s *discoveryv1.EndpointSlice, with spoiled) { s.Endpoints[0].Addresses[0] = with.word })
	add("an endpoint's address cannot be reached", func(s *discoveryv1.EndpointSlice, _ spoiled) { s.Endpoints[1].Addresses[0] = "127.0.0.1" })
	add("its address type is unknown", func(s *discoveryv1.EndpointSlice, with spoiled) { s.AddressType = discoveryv1.AddressType(with.word) })
	add("a port is out of range", func(s *discoveryv1.EndpointSlice, with spoiled) { s.Ports[0].Port = ptr(with.number) })
	add("a port is left out", func(s *discoveryv1.EndpointSlice, _ spoiled) { s.Ports[0].Port = nil })
	add("a protocol is unknown", func(s *discoveryv1.EndpointSlice, with spoiled) {
		s.Ports[1].Protocol = ptr(corev1.Protocol(with.word))
	})
	add("a port is there twice", func(s *discoveryv1.EndpointSlice, _ spoiled) { s.Ports = append(s.Ports, s.Ports[0]) })
	add("its port names are all others", func(s *discoveryv1.EndpointSlice, with spoiled) {
		for i := range s.Ports {
			s.Ports[i].Name = ptr(with.word + fmt.Sprint(i))
		}
	})
	add("there is no such Service", func(s *discoveryv1.EndpointSlice, with spoiled) {
		s.Labels[discoveryv1.LabelServiceName] = with.word
	})
	return out
}

// mistakes are all of them.
func mistakes() []mistake { return append(serviceMistakes, sliceMistakes()...) }
