package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"lace-cni.io/lace/bench/lab"
)

// Paths of the API.
const (
	Services = "/api/v1/namespaces/default/services"
	Pods     = "/api/v1/namespaces/default/pods"
	Nodes    = "/api/v1/nodes"
	Slices   = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	Ranges   = "/apis/networking.k8s.io/v1/servicecidrs"
	Events   = "/apis/events.k8s.io/v1/namespaces/default/events"
)

// CreateNodes makes the Node objects of the lab, from its YAML.
func (c *Cluster) CreateNodes(ctx context.Context, text []byte) error {
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var n corev1.Node
		if err := yaml.Unmarshal([]byte(doc), &n); err != nil {
			return err
		}
		status := n.Status
		status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := c.API.Create(ctx, Nodes, &n, nil); err != nil {
			return err
		}
		if err := c.API.Patch(ctx, Nodes+"/"+n.Name+"/status", map[string]any{"status": status}, nil); err != nil {
			return err
		}
	}
	return nil
}

// CreatePod makes the Pod object of a pod of the lab, as a kubelet leaves it when the
// pod is ready.
func (c *Cluster) CreatePod(ctx context.Context, h *lab.Host, labels map[string]string) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: h.Name, Labels: labels}}
	p.Spec.NodeName = h.Node
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	if err := c.API.Create(ctx, Pods, p, nil); err != nil {
		return err
	}
	return c.SetPodReady(ctx, h, true)
}

// SetPodReady says whether the pod is ready, as its kubelet would.
func (c *Cluster) SetPodReady(ctx context.Context, h *lab.Host, ready bool) error {
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: h.Addr4.String(),
		PodIPs:     []corev1.PodIP{{IP: h.Addr4.String()}, {IP: h.Addr6.String()}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
	}
	if ready {
		s.Conditions[0].Status = corev1.ConditionTrue
	}
	return c.API.Patch(ctx, Pods+"/"+h.Name+"/status", map[string]any{"status": s}, nil)
}

// Service is a dual-stack Service over pods with a label, with the ports of the lab's
// pods.
func Service(name string, selector map[string]string) *corev1.Service {
	both := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.Selector, s.Spec.IPFamilyPolicy = selector, &both
	for _, p := range lab.WebPorts {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: p.Name, Protocol: corev1.Protocol(p.Protocol), Port: 80, TargetPort: intstr.FromInt32(int32(p.Port)),
		})
	}
	return s
}

// CreateService makes a Service and returns it with the addresses that it was given.
func (c *Cluster) CreateService(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
	var made corev1.Service
	if err := c.API.Create(ctx, Services, s, &made); err != nil {
		return nil, err
	}
	if len(made.Spec.ClusterIPs) == 0 {
		return nil, fmt.Errorf("no address was given to Service %s", made.Name)
	}
	return &made, nil
}

// SetEndpoints replaces the IPv4 endpoints of a Service without selector.
func (c *Cluster) SetEndpoints(ctx context.Context, service string, addresses ...string) error {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Name, s.Labels = service, map[string]string{discoveryv1.LabelServiceName: service}
	for _, p := range lab.WebPorts {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port})
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	err := c.API.Put(ctx, Slices+"/"+service, s, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Code == http.StatusNotFound {
		return c.API.Create(ctx, Slices, s, nil)
	}
	return err
}
