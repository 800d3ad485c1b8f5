package kube

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/kube/kubetest"
)

// mirror is a sink that holds what it was told, and to what the API says about it.
type mirror struct {
	t     *testing.T
	store *kubetest.Store
	start int // version of the store when the source starts

	mu       sync.Mutex
	objects  map[string]metav1.Object
	versions map[string]int // highest that was delivered
	problems []model.Problem
	synced   bool
	applied  int
}

func newMirror(t *testing.T, s *kubetest.Store) *mirror {
	return &mirror{t: t, store: s, start: s.Latest(), objects: make(map[string]metav1.Object), versions: make(map[string]int)}
}

var resourceOf = map[source.Kind]string{
	source.Service: "services", source.EndpointSlice: "endpointslices", source.Node: "nodes", source.ServiceCIDR: "servicecidrs",
}

// Apply implements source.Sink. Nothing may go back in time.
func (m *mirror) Apply(changes []source.Change, problems []model.Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = problems
	m.applied++
	for _, c := range changes {
		key := resourceOf[c.Kind] + "/" + c.Name.String()
		if c.Object == nil {
			m.gone(key)
			delete(m.objects, key)
			continue
		}
		o := c.Object.(metav1.Object)
		if v := kubetest.Version(o); v < m.versions[key] {
			m.t.Errorf("%s: version %d was delivered after version %d", key, v, m.versions[key])
		} else {
			m.versions[key] = v
		}
		m.objects[key] = o
	}
}

// gone checks that an object that is taken away was really taken away at some time after
// the version that was delivered.
func (m *mirror) gone(key string) {
	before := m.objects[key]
	if before == nil {
		m.t.Errorf("%s: a deletion of what was not there", key)
		return
	}
	now := m.store.Get(key)
	if now != nil && kubetest.Version(now) == kubetest.Version(before) {
		m.t.Errorf("%s: taken away, although it is as it was delivered", key)
	}
}

// Synced implements source.Sink.
func (m *mirror) Synced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.synced {
		m.t.Error("synced twice")
	}
	m.synced = true
	for key, o := range m.store.Objects() {
		if kubetest.Version(o) <= m.start && wanted(key, o) != nil && m.objects[key] == nil {
			m.t.Errorf("synced without %s, which was there from the beginning", key)
		}
	}
}

// wanted is what the source is to deliver of an object of the API.
func wanted(key string, o metav1.Object) metav1.Object {
	trimmed, err := trim(o)
	if err != nil {
		panic(err)
	}
	_, other := o.GetLabels()[resolve.LabelProxyName]
	_, quiet := o.GetLabels()[corev1.IsHeadlessService]
	switch v := trimmed.(type) {
	case *corev1.Service:
		if other || quiet || v.Spec.ClusterIP == "None" {
			return nil
		}
	case *discoveryv1.EndpointSlice:
		if other || quiet {
			return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: v.Name, Namespace: v.Namespace, Labels: v.Labels, ResourceVersion: v.ResourceVersion}}
		}
	}
	return trimmed.(metav1.Object)
}

// diff is what the mirror has and should not, and the other way round.
func (m *mirror) diff() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	want := make(map[string]metav1.Object)
	for key, o := range m.store.Objects() {
		if w := wanted(key, o); w != nil {
			want[key] = unversioned(w)
		}
	}
	got := make(map[string]metav1.Object)
	for key, o := range m.objects {
		c := o.(runtime.Object).DeepCopyObject()
		c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		got[key] = unversioned(c.(metav1.Object))
	}
	return cmp.Diff(want, got)
}

// unversioned leaves out the version of a Node, of which heartbeats are not delivered.
func unversioned(o metav1.Object) metav1.Object {
	if n, ok := o.(*corev1.Node); ok {
		n.ResourceVersion = ""
	}
	return o
}

func (m *mirror) isSynced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}
