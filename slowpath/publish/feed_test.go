package publish_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/slowpath/source/dir"
	"lace-cni.io/lace/slowpath/source/kube"
	"lace-cni.io/lace/slowpath/source/kube/kubetest"
)

// feed is how the objects of a script come to the publisher.
type feed interface {
	// start begins to feed a publisher, which is not told yet that this is all.
	start(p *publish.Publisher) error
	// all lets the publisher know that everything was said.
	all() error
	// change puts objects, or removes them; problems are those of all files.
	change(objects []dir.Object, put bool, problems []model.Problem) error
	stop()
}

// told tells the publisher what files say, as the folder source does.
type told struct{ publisher *publish.Publisher }

func (f *told) start(p *publish.Publisher) error { f.publisher = p; return nil }
func (f *told) all() error                       { f.publisher.Synced(); return nil }
func (f *told) stop()                            {}

func (f *told) change(objects []dir.Object, put bool, problems []model.Problem) error {
	var changes []source.Change
	for _, o := range objects {
		c := source.Change{Kind: o.Kind, Name: o.Name, Trigger: time.Now()}
		if put {
			c.Object = o.Object
		}
		changes = append(changes, c)
	}
	f.publisher.Apply(changes, problems)
	return nil
}

// api writes the objects to an API server, which is read over HTTPS. What cannot be read
// from a file does not get there, so that it is no Problem.
type api struct {
	dir    string
	server *kubetest.Server
	heard  *heard
	end    []func()
}

func (f *api) start(p *publish.Publisher) error {
	f.server = kubetest.NewServer(kubetest.NewStore(), 1, 1)
	f.server.Set(kubetest.Mood{Silent: true})
	at, err := f.server.Serve(f.dir)
	if err != nil {
		return err
	}
	k, err := kube.New(kube.Config{Kubeconfig: at.Kubeconfig, Node: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		at.Close()
		return err
	}
	f.heard = &heard{next: p, changed: make(chan struct{}), versions: make(map[string]string)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = k.Run(ctx, f.heard) }()
	f.end = []func(){func() { cancel(); <-done }, at.Close}
	return nil
}

func (f *api) stop() {
	for _, e := range f.end {
		e()
	}
	f.end = nil
}

func (f *api) all() error {
	f.server.Set(kubetest.Mood{})
	if err := f.heard.wait(func() bool { return f.heard.synced }); err != nil {
		return err
	}
	return f.delivered()
}

var resourceOf = map[source.Kind]string{
	source.Service: "services", source.EndpointSlice: "endpointslices", source.Node: "nodes", source.ServiceCIDR: "servicecidrs",
}

func (f *api) change(objects []dir.Object, put bool, _ []model.Problem) error {
	for _, o := range objects {
		var now metav1.Object
		if put {
			now = o.Object.(metav1.Object)
		}
		f.server.Write(resourceOf[o.Kind]+"/"+o.Name.String(), now)
	}
	if f.heard.lists() {
		return f.delivered()
	}
	return nil
}

// delivered waits until the publisher was told of every object as the API has it.
func (f *api) delivered() error {
	want := make(map[string]string)
	for key, o := range f.server.Objects() {
		if !leftOut(o) {
			want[key] = o.GetResourceVersion()
		}
	}
	return f.heard.wait(func() bool { return maps.Equal(want, f.heard.versions) })
}

// leftOut are Services that a node does not read: the selectors leave them out.
func leftOut(o metav1.Object) bool {
	s, ok := o.(*corev1.Service)
	if !ok {
		return false
	}
	_, other := s.Labels[resolve.LabelProxyName]
	_, headless := s.Labels[corev1.IsHeadlessService]
	return other || headless || s.Spec.ClusterIP == corev1.ClusterIPNone
}

// heard is a sink that notes what passes to the next one.
type heard struct {
	next     source.Sink
	mu       sync.Mutex
	changed  chan struct{}
	versions map[string]string
	synced   bool
}

// Apply implements source.Sink.
func (h *heard) Apply(changes []source.Change, problems []model.Problem) {
	h.next.Apply(changes, problems)
	h.note(func() {
		for _, c := range changes {
			key := resourceOf[c.Kind] + "/" + c.Name.String()
			if c.Object == nil {
				delete(h.versions, key)
			} else {
				h.versions[key] = c.Object.(metav1.Object).GetResourceVersion()
			}
		}
	})
}

// Synced implements source.Sink.
func (h *heard) Synced() {
	h.next.Synced()
	h.note(func() { h.synced = true })
}

func (h *heard) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *heard) lists() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced
}

// wait returns when the condition holds, which is looked at under the lock.
func (h *heard) wait(holds func() bool) error {
	late := time.After(20 * time.Second)
	for {
		h.mu.Lock()
		ok, changed := holds(), h.changed
		h.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-late:
			return fmt.Errorf("the source did not deliver in time; it has %v", h.versions)
		}
	}
}
