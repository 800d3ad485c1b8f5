package publish

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/control/resolve"
	"lace-cni.io/lace/slowpath/source"
)

// work is what belongs to the publishing goroutine alone.
type work struct {
	config     *Config
	compiler   *compile.Compiler
	generation uint64    // of the last snapshot that was written
	published  time.Time // when it was
	began      time.Time // when the work on the next one began
	bytes      int       // its size
	unwritten  bool      // the compiler made a snapshot that did not reach the file, or the file was changed
	mark       mark      // of the file that was written

	objects  *resolve.Objects
	touched  map[model.Name]struct{} // Services to be resolved
	node     model.Node
	ranges   []netip.Prefix   // service ranges
	services []*model.Service // sorted; a new slice for each State

	problems       map[model.Name][]model.Problem // by Service
	strays         map[model.Name][]resolve.Stray // ClusterIPs in no service range, by Service
	nodeProblems   map[string][]model.Problem
	nodes          map[string][]netip.Addr // addresses of every node
	hereProblems   []model.Problem
	rangeProblems  []model.Problem
	sourceProblems []model.Problem

	synced   bool
	resolved bool // everything, once
	attached *attached
	latency  latency
}

func newWork(c *Config, compiler *compile.Compiler, generation uint64) work {
	compiler.SetReserved(c.Reserved)
	compiler.SetAgentPorts(c.AgentPorts)
	objects := resolve.NewObjects()
	objects.Partial = c.Partial
	return work{
		config: c, compiler: compiler, generation: generation,
		objects: objects, touched: map[model.Name]struct{}{},
		problems: map[model.Name][]model.Problem{}, nodeProblems: map[string][]model.Problem{},
		strays:  map[model.Name][]resolve.Stray{},
		nodes:   map[string][]netip.Addr{},
		latency: latency{started: time.Now()},
	}
}

// ready says whether there is enough to publish.
func (w *work) ready() bool { return w.synced && w.attached != nil }

// take puts the mail where it belongs.
func (w *work) take(m mail) {
	for _, c := range m.changes {
		w.latency.note(c, w.objects)
		w.put(c)
	}
	if m.told {
		w.sourceProblems = m.sourceProblems
	}
	w.synced = w.synced || m.synced
	if m.attached != nil {
		w.attached = m.attached
		w.compiler.SetAttachments(m.attached.attachments)
	}
}

func (w *work) put(c source.Change) {
	switch c.Kind {
	case source.Service:
		s, _ := c.Object.(*corev1.Service)
		w.objects.PutService(c.Name, s)
		w.touch(c.Name)
	case source.EndpointSlice:
		s, _ := c.Object.(*discoveryv1.EndpointSlice)
		for _, owner := range w.objects.PutSlice(c.Name, s) {
			w.touch(owner)
		}
	case source.ServiceCIDR:
		s, _ := c.Object.(*networkingv1.ServiceCIDR)
		w.objects.PutServiceCIDR(c.Name.Name, s)
	case source.Node:
		n, _ := c.Object.(*corev1.Node)
		w.objects.PutNode(c.Name.Name, n)
		w.putNode(c.Name.Name, n)
	}
}

func (w *work) touch(n model.Name) { w.touched[n] = struct{}{} }

// putNode keeps the addresses of every node, and the Problems of other nodes; those of this
// one come with Here.
func (w *work) putNode(name string, n *corev1.Node) {
	delete(w.nodeProblems, name)
	w.putAddresses(name, n)
	if n == nil || name == w.config.Node {
		return
	}
	if _, problems := resolve.Node(n); len(problems) > 0 {
		w.nodeProblems[name] = problems
	}
}

// resolve works out the Services that were touched, all of them when this node is not
// what it was. It returns an error when ctx ends first; what is left is then still to be done.
func (w *work) resolve(ctx context.Context) error {
	here, problems := w.objects.Here(w.config.Node)
	w.hereProblems = problems
	here.NodePorts = w.config.At.Of(here, &w.attached.attachments)
	here.Aliases = resolve.Own(&w.attached.attachments)
	if moved := w.arrange(); moved || !w.resolved || !reflect.DeepEqual(here, w.node) {
		w.node, w.resolved = here, true
		for _, n := range w.objects.Names() {
			w.touch(n)
		}
	}
	if len(w.touched) == 0 {
		return nil
	}
	names := make([]model.Name, 0, len(w.touched))
	for n := range w.touched {
		names = append(names, n)
	}
	slices.SortFunc(names, model.Name.Compare)
	w.services = slices.Clone(w.services)
	for _, n := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.resolveOne(n)
		delete(w.touched, n)
	}
	return nil
}

// arrange takes the service ranges that hold now, and says whether they are others.
func (w *work) arrange() bool {
	ranges := w.config.Ranges
	if ranges == nil {
		ranges, w.rangeProblems = w.objects.Ranges()
	}
	if w.resolved && slices.Equal(ranges, w.ranges) {
		return false
	}
	w.ranges = ranges
	w.config.Ranged(ranges)
	return true
}

func (w *work) resolveOne(n model.Name) {
	s, problems := w.objects.Resolve(n, w.node)
	delete(w.strays, n)
	if s != nil {
		if strays := resolve.Outside(s, w.ranges); len(strays) > 0 {
			w.strays[n] = strays
		}
	}
	if len(problems) > 0 {
		w.problems[n] = problems
	} else {
		delete(w.problems, n)
	}
	i, there := slices.BinarySearchFunc(w.services, n, func(s *model.Service, n model.Name) int { return s.Name.Compare(n) })
	switch {
	case s != nil && there:
		w.services[i] = s
	case s != nil:
		w.services = slices.Insert(w.services, i, s)
	case there:
		w.services = slices.Delete(w.services, i, i+1)
	}
	if s != nil {
		w.compiler.SetService(s)
	} else {
		w.compiler.DeleteService(n)
	}
}
