package manifests

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// needed are the objects of Files that the pods and calls of a demo are made for.
var needed = []object{
	{Kind: "Node", Name: "n1"},
	{Kind: "Node", Name: "n2"},
	{Kind: "Service", Namespace: "default", Name: "web", Addresses: []string{"10.96.0.10", "fd00:10:96::10"}},
}

// object is what Missing looks at.
type object struct {
	Kind, Namespace, Name string
	Addresses             []string
}

func (o object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return fmt.Sprintf("%s %s/%s with clusterIPs %v", o.Kind, o.Namespace, o.Name, o.Addresses)
}

// separator is a line that ends a document (YAML 1.2.2, section 9.1.2).
var separator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?$`)

// Missing names the objects without which no demo can be played on a folder of YAML. What
// is no YAML is passed over: Lace has a Problem for it.
func Missing(folder fs.FS) (out []string, err error) {
	var there []object
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		for _, document := range separator.Split(string(b), -1) {
			there = append(there, describe(document))
		}
	}
	for _, n := range needed {
		if !slices.ContainsFunc(there, n.is) {
			out = append(out, n.String())
		}
	}
	return out, nil
}

// is reports whether another object is the one that is needed.
func (o object) is(other object) bool {
	return o.Kind == other.Kind && o.Name == other.Name && o.Namespace == other.Namespace && slices.Equal(o.Addresses, other.Addresses)
}

// describe takes from a document what Missing compares. Of a Service the namespace is "default"
// where it says none.
func describe(document string) (o object) {
	var d struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Spec     struct{ ClusterIPs []string }
	}
	if yaml.Unmarshal([]byte(document), &d) != nil {
		return o
	}
	o = object{Kind: d.Kind, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name, Addresses: d.Spec.ClusterIPs}
	if d.Kind == "Service" && o.Namespace == "" {
		o.Namespace = "default"
	}
	return o
}
