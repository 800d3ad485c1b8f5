package dir

import (
	"strings"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// Places are where the objects that are taken from a folder are written, and where what could
// not be read is. Nothing in them is ever changed.
type Places struct {
	objects  map[objectKey]*Object
	problems map[model.Problem]source.Place // of files
}

// Of returns the place of a Problem, as source.Placer says.
func (ps Places) Of(p model.Problem) source.Place {
	if at, known := ps.problems[p]; known {
		return at
	}
	k := objectKey{kind: source.Kind(p.Kind)}
	if namespace, name, both := strings.Cut(p.Object, "/"); both {
		k.name = model.Name{Namespace: namespace, Name: name}
	} else {
		k.name.Name = p.Object
	}
	o, written := ps.objects[k]
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
