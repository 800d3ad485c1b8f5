package dir

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"lace-cni.io/lace/slowpath/source"
)

// described is an object that may be wrong, as far as it says which one it is.
type described struct {
	kind string
	text []byte // JSON
}

// String is kind and name of the object; empty when it does not say them.
func (d described) String() string {
	switch source.Kind(d.kind) {
	case source.Service, source.EndpointSlice, source.Node, source.ServiceCIDR:
	default:
		return ""
	}
	var o struct{ Metadata json.RawMessage }
	var meta struct{ Namespace, Name json.RawMessage }
	if json.Unmarshal(d.text, &o) != nil || json.Unmarshal(o.Metadata, &meta) != nil {
		return d.kind
	}
	name, namespace := word(meta.Name), word(meta.Namespace)
	switch {
	case name == "":
		return d.kind
	case d.kind == string(source.Node), d.kind == string(source.ServiceCIDR):
		return d.kind + " " + name
	case len(meta.Namespace) == 0:
		namespace = corev1.NamespaceDefault
	}
	return d.kind + " " + namespace + "/" + name
}

// word is a name that may be shown as it is; empty: it is none.
func word(text json.RawMessage) string {
	var s string
	if json.Unmarshal(text, &s) != nil || len(validation.IsDNS1123Subdomain(s)) > 0 {
		return ""
	}
	return s
}
