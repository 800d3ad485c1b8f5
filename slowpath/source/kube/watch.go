package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/source"
)

// Watches of EndpointSlices: the served ones, and those that a label takes away, by the
// label. A selector cannot say "one or the other".
const (
	served = iota
	otherProxys
	headless
	watches
)

// stream is one list and watch.
type stream struct {
	kind source.Kind
	half int    // of EndpointSlices
	what string // for people and for access rules: the resource

	example            runtime.Object
	labels, fields     string
	list               func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch              func(context.Context, metav1.ListOptions) (watch.Interface, error)
	resource, apiGroup string
}

// unlabelled selects what no opt-out takes away.
const unlabelled = "!" + resolve.LabelProxyName + ",!" + corev1.IsHeadlessService

// streams are everything that is asked of the API.
func streams(c *client, ranges bool) []*stream {
	slice := func(half int, labels string) *stream {
		return &stream{kind: source.EndpointSlice, half: half, example: &discoveryv1.EndpointSlice{}, resource: "endpointslices", apiGroup: discoveryv1.GroupName, labels: labels}
	}
	out := []*stream{
		{kind: source.Service, example: &corev1.Service{}, resource: "services", labels: unlabelled, fields: "spec.clusterIP!=None"},
		slice(served, unlabelled),
		slice(otherProxys, resolve.LabelProxyName),
		slice(headless, corev1.IsHeadlessService+",!"+resolve.LabelProxyName),
		{kind: source.Node, example: &corev1.Node{}, resource: "nodes"},
	}
	if ranges {
		out = append(out, &stream{kind: source.ServiceCIDR, example: &networkingv1.ServiceCIDR{}, resource: "servicecidrs", apiGroup: networkingv1.GroupName})
	}
	groups := map[string]*rest.RESTClient{corev1.GroupName: c.core, discoveryv1.GroupName: c.discovery, networkingv1.GroupName: c.networking}
	for _, s := range out {
		if s.what = s.resource; s.apiGroup != "" {
			s.what += "." + s.apiGroup
		}
		if s.half == served {
			s.whole(groups[s.apiGroup])
		} else {
			s.names(c)
		}
	}
	return out
}

// whole reads objects with all that is in them.
func (s *stream) whole(c *rest.RESTClient) {
	s.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.Get().Resource(s.resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Get()
	}
	s.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.Watch = true
		return c.Get().Resource(s.resource).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
	}
}

// names reads the metadata of objects only.
func (s *stream) names(c *client) {
	s.example = &metav1.PartialObjectMetadata{}
	from := c.metadata.Resource(discoveryv1.SchemeGroupVersion.WithResource(s.resource))
	s.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return from.List(ctx, o) }
	s.watch = from.Watch
}

// listWatch is the stream as a reflector wants it; told hears of every attempt.
func (s *stream) listWatch(told func(error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" { // "anything that you have": it may be older than what is in use
				o.ResourceVersion = ""
			}
			list, err := s.list(ctx, s.selecting(o))
			told(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := s.watch(ctx, s.selecting(o))
			told(err)
			return w, err
		},
	}
}

func (s *stream) selecting(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = s.labels, s.fields
	return o
}
