package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Declared are objects of the API that are written as YAML under names, the way a folder
// has them in files. It is not safe for use by several goroutines.
type Declared struct {
	cluster *Cluster
	under   map[string][]string // name → paths of its objects
}

// Declare begins with nothing, and takes from the API what others have declared: Services
// and EndpointSlices but those of the API server itself, and Nodes but the two of every lab.
// It returns when a list says so that the API server has not read anew, as agents' lists are.
func (c *Cluster) Declare(ctx context.Context) (*Declared, error) {
	return &Declared{c, map[string][]string{}}, c.wipe(ctx)
}

// declared selects what tests declare: not what is there when a cluster has begun.
var declared = map[string]url.Values{
	Services: {"labelSelector": {"provider!=kubernetes"}},
	Slices:   {"labelSelector": {"kubernetes.io/service-name!=kubernetes"}},
	Nodes:    {"fieldSelector": {"metadata.name!=n1,metadata.name!=n2"}},
}

func (c *Cluster) wipe(ctx context.Context) error {
	for path, selected := range declared {
		path += "?" + selected.Encode()
		if err := c.API.Delete(ctx, path); err != nil {
			return err
		}
		for {
			var left metav1.PartialObjectMetadataList
			if err := c.API.Get(ctx, path+"&resourceVersion=0", &left); err != nil {
				return err
			}
			if len(left.Items) == 0 {
				break
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%s of the API server still has %s: %w", path, left.Items[0].Name, ctx.Err())
			}
		}
	}
	return nil
}

// Save declares the objects of a text, in the place of those that were declared under the
// name before. They are Nodes, and Services and EndpointSlices of the default namespace; what
// they say of status is written, too.
func (d *Declared) Save(ctx context.Context, name string, text []byte) error {
	before := d.under[name]
	var now []string
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if object == nil {
			continue // comments
		}
		path, err := d.apply(ctx, object)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		now = append(now, path)
	}
	d.under[name] = now
	return d.delete(ctx, slices.DeleteFunc(before, func(path string) bool { return slices.Contains(now, path) }))
}

// Remove takes back what is declared under a name.
func (d *Declared) Remove(ctx context.Context, name string) error {
	paths := d.under[name]
	if paths == nil {
		return fmt.Errorf("nothing is declared under %q", name)
	}
	delete(d.under, name)
	return d.delete(ctx, paths)
}

func (d *Declared) delete(ctx context.Context, paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, d.cluster.API.Delete(ctx, path))
	}
	return errors.Join(errs...)
}

// kinds are where objects of a kind are.
var kinds = map[string]string{"Service": Services, "EndpointSlice": Slices, "Node": Nodes}

// apply writes an object as its only owner, and its status, and returns its path.
func (d *Declared) apply(ctx context.Context, object map[string]any) (path string, err error) {
	kind, _ := object["kind"].(string)
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if kinds[kind] == "" || name == "" {
		return "", fmt.Errorf("%s %q: declare Services, EndpointSlices and Nodes, with names", kind, name)
	}
	path = kinds[kind] + "/" + name
	status := object["status"]
	delete(object, "status")
	if err := d.cluster.API.Apply(ctx, path, object); err != nil || status == nil {
		return path, err
	}
	// Not applied: a Node has two addresses of one type, which have no keys of their own.
	return path, d.cluster.API.Patch(ctx, path+"/status", map[string]any{"status": status}, nil)
}

// Apply writes what an object says as the only owner of its fields, and makes it if it is
// not there.
func (a *API) Apply(ctx context.Context, path string, object any) error {
	return a.send(ctx, http.MethodPatch, path+"?fieldManager=lab&force=true", "application/apply-patch+yaml", object, nil)
}
