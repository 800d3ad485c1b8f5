package dir

import (
	"strings"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// Places are the objects that are taken from a folder, each with where it is written. Nothing
// in them is ever changed.
type Places map[objectKey]*Object

// Of returns where the object that a Problem is about is written, as source.Placer says.
func (ps Places) Of(p model.Problem) source.Place {
	k := objectKey{kind: source.Kind(p.Kind)}
	if namespace, name, both := strings.Cut(p.Object, "/"); both {
		k.name = model.Name{Namespace: namespace, Name: name}
	} else {
		k.name.Name = p.Object
	}
	o, written := ps[k]
	if !written || k.kind == source.Node && !inNode(p.Field) {
		return source.Place{}
	}
	return o.Place
}

// inNode reports whether a field is one of a Node object. Other Problems of kind Node are about
// the machine.
func inNode(field string) bool {
	top, _, _ := strings.Cut(field, ".")
	switch top {
	case "metadata", "spec", "status":
		return true
	}
	return false
}

// Place implements source.Placer. An object that its file does not show any more, and that
// stays all the same, has the place that it had.
func (d *Dir) Place(p model.Problem) source.Place {
	if now := d.places.Load(); now != nil {
		return now.Of(p)
	}
	return source.Place{}
}
