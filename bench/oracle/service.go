package oracle

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// service throws dice for a Service. Each has an age of its own: whose an address is must
// not depend on which one was there first.
func (g *generator) service(i int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint("s", i), Namespace: "demo", UID: "u", Labels: g.labels("service"), Annotations: map[string]string{},
		CreationTimestamp: metav1.NewTime(time.Unix(int64(1_000_000+(i*7)%5), 0)),
	}}
	s.Spec.Type = one(g.Dice, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeLoadBalancer)
	if rarely(g, 20) {
		s.Spec.Type = one(g.Dice, corev1.ServiceTypeExternalName, "", "Odd")
	}
	g.own(s)
	g.ports(s)
	g.policies(s)
	g.more(s)
	return s
}

// own throws dice for the Service's own addresses.
func (g *generator) own(s *corev1.Service) {
	pool, at := g.cluster.place.own, 2*g.IntN(3)
	four, six := pool[at].String(), pool[at+1].String()
	switch g.IntN(4) {
	case 0:
		s.Spec.ClusterIP = four
	case 1:
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = six, []string{six}, []corev1.IPFamily{corev1.IPv6Protocol}
	default:
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = four, []string{four, six}, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
	switch g.IntN(30) {
	case 1:
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", nil
	case 2:
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
	case 3:
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.256", nil
	case 4:
		s.Spec.ClusterIP, s.Spec.ClusterIPs = one(g.Dice, podsHere...).String(), nil
	case 5:
		s.Spec.ClusterIP, s.Spec.ClusterIPs = one(g.Dice, nodeOwn...).String(), nil
	case 6:
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	case 7:
		s.Spec.IPFamilies = []corev1.IPFamily{"IPv5"}
	}
}

func (g *generator) ports(s *corev1.Service) {
	for i, name := range []string{"", "a", "b"} {
		if i > 0 && g.IntN(2) == 0 {
			break
		}
		p := corev1.ServicePort{Name: name, Port: one[int32](g, 80, 81, 53), Protocol: one(g.Dice, "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)}
		p.NodePort = one(g.Dice, append([]int32{0}, g.cluster.place.nodePorts...)...)
		switch g.IntN(40) {
		case 1:
			p.Port = one[int32](g, 0, -1, 65536)
		case 2:
			p.Protocol = "ICMP"
		case 3:
			p.NodePort = one[int32](g, -1, 70000)
		case 4:
			p.Name = ""
		}
		s.Spec.Ports = append(s.Spec.Ports, p)
	}
	if rarely(g, 40) {
		s.Spec.Ports = nil
	}
}

func (g *generator) policies(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = one(g.Dice, nil, new(corev1.ServiceInternalTrafficPolicyCluster), new(corev1.ServiceInternalTrafficPolicyLocal))
	s.Spec.ExternalTrafficPolicy = one(g.Dice, "", corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	if rarely(g, 30) {
		s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy("Odd")), "Odd"
	}
	s.Spec.SessionAffinity = one(g.Dice, "", corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	if rarely(g, 30) {
		s.Spec.SessionAffinity = "Odd"
	}
	if rarely(g, 6) {
		s.Annotations["lace-cni.io/traffic-distribution"] = one(g.Dice, "PreferClosest", "PreferClosest", "Odd")
	}
	s.Spec.TrafficDistribution = one(g.Dice, nil, new("PreferSameZone"), new("PreferSameNode"), new("PreferClose"))
	s.Spec.PublishNotReadyAddresses = g.IntN(2) == 0
}

// more throws dice for addresses from outside and who may call them.
func (g *generator) more(s *corev1.Service) {
	elsewhere := g.cluster.place.elsewhere
	if rarely(g, 3) {
		s.Spec.ExternalIPs = some(g.Dice, elsewhere[0].String(), elsewhere[1].String(), elsewhere[4].String(), elsewhere[5].String())
	}
	if rarely(g, 8) {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, one(g.Dice, otherNodes[0].String(), nodeOwn[0].String(), nodeOwn[1].String(), podsHere[0].String(), byHand[0].String(), g.cluster.place.own[0].String(), "host", "::1"))
	}
	for _, a := range some[netip.Addr](g, elsewhere...) {
		in := corev1.LoadBalancerIngress{IP: a.String()}
		switch g.IntN(6) {
		case 0:
			in.IPMode = new(corev1.LoadBalancerIPModeVIP)
		case 1:
			in.IPMode = new(corev1.LoadBalancerIPModeProxy)
		case 2:
			in = corev1.LoadBalancerIngress{Hostname: "lb.example.org"}
		}
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, in)
	}
	if rarely(g, 8) {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{
			IP: one(g.Dice, otherNodes[0].String(), nodeOwn[0].String(), nodeOwn[3].String(), podsHere[0].String(), byHand[0].String(), podsThere[0].String(), "odd"),
		})
	}
	if rarely(g, 3) {
		s.Spec.LoadBalancerSourceRanges = some(g.Dice, "198.18.0.0/16", " 10.244.0.0/16 ", "172.30.0.0/24", "2001:db8:5::/48", "fd00:10:244::/48", "192.0.2.200/32")
	}
	if rarely(g, 20) {
		s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, one(g.Dice, "0.0.0.0/0", "::/0", "odd", "2001:db8:5::/200", "::ffff:198.18.0.0/112"))
	}
}
