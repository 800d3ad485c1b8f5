package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/manifests"
)

// objects is where tests declare what a lab's agents read: YAML under names.
type objects interface {
	// Save declares the objects of a text, in the place of those under the name before.
	Save(ctx context.Context, name string, text []byte) error
	// Remove takes back what is declared under a name.
	Remove(ctx context.Context, name string) error
}

// folder is one of YAML, a file for each name.
type folder string

func (f folder) Save(_ context.Context, name string, text []byte) error {
	return manifests.Save(string(f), name+".yaml", text)
}

func (f folder) Remove(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(f), name+".yaml"))
}

// startLab starts a lab whose agents read from the source that was asked for. The lab's own
// manifests are declared there.
func startLab(ctx context.Context, topology lab.Topology) (*lab.Lab, objects, error) {
	if *sourceName == fromAPI {
		return startLabOnAPI(ctx, topology)
	}
	l, err := lab.Start(ctx, topology)
	if err != nil {
		return nil, nil, err
	}
	return l, folder(l.Manifests()), nil
}

// declare writes objects under a name.
func (c *cluster) declare(t *testing.T, name string, text []byte) {
	t.Helper()
	c.must(t, c.objects.Save(t.Context(), name, text))
}

// retract takes back what is declared under names, in their order.
func (c *cluster) retract(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		c.must(t, c.objects.Remove(t.Context(), name))
	}
}
