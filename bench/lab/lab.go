package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Lab is a running cluster in namespaces.
type Lab struct {
	topology Topology
	folder   *folder
	nursery  *nursery

	mu      sync.Mutex // guards what follows while hosts are being made
	cells   []*cell
	wire    *cell
	outside *Host
	nodes   map[string]*Node
	pods    map[string]*Host
}

// Start builds the topology: afterwards every host can reach every other one as in a
// routed pod network without any service proxy. Fast paths and agents are started by
// Node's methods. It needs the capabilities that testenv.Missing names. On failure nothing
// is left behind.
func Start(ctx context.Context, t Topology) (*Lab, error) {
	if err := t.complete(); err != nil {
		return nil, err
	}
	f, err := newFolder(&t)
	if err != nil {
		return nil, err
	}
	l := &Lab{topology: t, folder: f, nursery: newNursery(), nodes: map[string]*Node{}, pods: map[string]*Host{}}
	if err := l.build(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lab) build(ctx context.Context) error {
	if err := l.spawn(); err != nil {
		return err
	}
	return l.connect(ctx)
}

// Close ends every process of the lab and removes its folder unless it is to be kept.
// Namespaces, links and BPF objects go with the last process that uses them.
func (l *Lab) Close() error {
	for _, c := range l.cells {
		c.kill()
	}
	l.nursery.close()
	return l.folder.close(l.topology.Keep)
}

// Node is n1 or n2; nil when there is none of that name.
func (l *Lab) Node(name string) *Node { return l.nodes[name] }

// Nodes in the order of their names.
func (l *Lab) Nodes() []*Node {
	var out []*Node
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		out = append(out, l.nodes[name])
	}
	return out
}

// Pod by name; nil when there is none.
func (l *Lab) Pod(name string) *Host { return l.pods[name] }

// Pods in the order of their names.
func (l *Lab) Pods() []*Host {
	var out []*Host
	for _, name := range slices.Sorted(maps.Keys(l.pods)) {
		out = append(out, l.pods[name])
	}
	return out
}

// Outside is the client that is not part of the cluster.
func (l *Lab) Outside() *Host { return l.outside }

// Wire holds the bridge between nodes and outside client; it has a port named after each of
// them, and no addresses.
func (l *Lab) Wire() *Host { return &Host{Name: wireName, cell: l.wire} }

// Host finds a pod, a node or the outside client by name.
func (l *Lab) Host(name string) (*Host, error) {
	if name == OutsideName {
		return l.outside, nil
	}
	if n := l.nodes[name]; n != nil {
		return n.Host, nil
	}
	if p := l.pods[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no host %q in the lab", name)
}

// Manifests is the folder of YAML that all agents read. Saving a file in it takes effect.
func (l *Lab) Manifests() string { return l.folder.manifests() }

// Folder is where the lab keeps manifests and logs.
func (l *Lab) Folder() string { return l.folder.path }
