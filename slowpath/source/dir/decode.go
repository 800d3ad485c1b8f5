package dir

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// Object is one object of a file.
type Object struct {
	Kind   source.Kind
	Name   model.Name
	Object any // as source.Change has it
	Place  source.Place
}

// Decode reads all documents of a file. Every document that is wrong is a Problem, and
// the others are read all the same. file is the name to blame.
func Decode(file string, b []byte) ([]Object, []model.Problem) {
	var objects []Object
	var problems []model.Problem
	for _, d := range split(b) {
		r := decodeDocument(file, d)
		objects = append(objects, r.objects...)
		problems = append(problems, r.problems.told()...)
	}
	return objects, problems
}

// result is what one document says.
type result struct {
	objects  []Object
	problems problems
	broken   bool // something in it could not be read
}

// reader is one document on its way.
type reader struct {
	result
	file  string
	doc   document
	about described // the object that is read now
	item  string    // of a list; empty: the document
}

func decodeDocument(file string, d document) result {
	r := reader{file: file, doc: d}
	text := d.json // which is YAML, and read much faster
	if text == nil {
		var err error
		if text, err = toJSON(d.text); err != nil {
			r.notYAML(err)
			return r.result
		}
	}
	r.object("", text, metav1.TypeMeta{})
	return r.result
}

// wrong notes something that could not be read.
func (r *reader) wrong(field, reason, format string, args ...any) {
	r.note(field, reason, format, args...)
	r.broken = true
}

func (r *reader) note(field, reason, format string, args ...any) {
	r.noteAt(r.doc.lineOf(field), field, reason, format, args...)
}

func (r *reader) noteAt(line int, field, reason, format string, args ...any) {
	message := fmt.Sprintf(format, model.Excerpts(args)...)
	if about := r.about.String(); about != "" {
		message = about + ": " + message
	}
	r.problems = append(r.problems, problem{
		model.Problem{
			Kind: "File", Object: documentName(r.file, r.doc.number), Field: model.Excerpt(field), Reason: reason, Message: message,
		},
		source.Place{File: r.file, Document: r.doc.number, Line: line, Item: r.item},
	})
}

func (r *reader) notYAML(err error) {
	message, line := yamlFault(err, r.doc.line)
	if line == 0 {
		line = r.doc.first()
	}
	r.noteAt(line, "", "NotYAML", "%s; correct the document", message)
	r.broken = true
}

func documentName(file string, number int) string { return fmt.Sprintf("%s document %d", file, number) }

// kinds that are read. A nil maker is a list.
var kinds = map[metav1.TypeMeta]func() runtime.Object{
	{APIVersion: "v1", Kind: "Service"}:                            func() runtime.Object { return &corev1.Service{} },
	{APIVersion: "v1", Kind: "Node"}:                               func() runtime.Object { return &corev1.Node{} },
	{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}:     func() runtime.Object { return &discoveryv1.EndpointSlice{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDR"}:      func() runtime.Object { return &networkingv1.ServiceCIDR{} },
	{APIVersion: "v1", Kind: "List"}:                               nil,
	{APIVersion: "v1", Kind: "ServiceList"}:                        nil,
	{APIVersion: "v1", Kind: "NodeList"}:                           nil,
	{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"}: nil,
	{APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDRList"}:  nil,
}

// object reads one object or list. at is its path in the document; presumed is what it
// is when it does not say, as items of a typed list need not.
func (r *reader) object(at string, text []byte, presumed metav1.TypeMeta) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		for _, f := range faults(err) {
			r.wrong(join(at, f.field), "NotAnObject", "this is no Kubernetes object: %s; write apiVersion, kind and metadata", f.message)
		}
		return
	}
	if meta == (metav1.TypeMeta{}) {
		meta = presumed
	}
	r.about = described{meta.Kind, text}
	make, known := kinds[meta]
	switch {
	case !known:
		r.unknown(at, meta)
	case make == nil:
		r.list(at, text, meta)
	default:
		r.single(at, text, make())
	}
}

func (r *reader) unknown(at string, meta metav1.TypeMeta) {
	if meta.Kind == "" {
		r.wrong(join(at, "kind"), "NoKind", "the object does not say what it is; write kind and apiVersion")
		return
	}
	for k := range kinds {
		if k.Kind == meta.Kind {
			r.wrong(join(at, "apiVersion"), "UnknownVersion", "%s is read as %s, not %q; write apiVersion: %s", k.Kind, k.APIVersion, meta.APIVersion, k.APIVersion)
			return
		}
	}
	r.wrong(join(at, "kind"), "UnknownKind", "%q is not read: the folder may hold Service, EndpointSlice, Node, ServiceCIDR and lists of them; keep other objects elsewhere", meta.Kind)
}

// list reads the items one by one, so that a wrong one does not cost the others.
func (r *reader) list(at string, text []byte, meta metav1.TypeMeta) {
	if at != "" {
		r.wrong(join(at, "kind"), "NestedList", "a %s inside a list is not read; write its items side by side", meta.Kind)
		return
	}
	var l corev1.List
	if !r.strictly(at, text, &l) {
		return
	}
	presumed := metav1.TypeMeta{}
	if meta.Kind != "List" {
		presumed = metav1.TypeMeta{APIVersion: meta.APIVersion, Kind: meta.Kind[:len(meta.Kind)-len("List")]}
	}
	for i := range l.Items {
		r.about, r.item = described{}, fmt.Sprintf("items[%d]", i)
		if len(l.Items[i].Raw) == 0 { // the decoder drops a null
			r.wrong(r.item, "NotAnObject", "the item is null, which is no Kubernetes object; write one, or remove the item")
			continue
		}
		r.object(r.item, l.Items[i].Raw, presumed)
	}
}

func (r *reader) single(at string, text []byte, into runtime.Object) {
	if !r.strictly(at, text, into) {
		return
	}
	o := Object{Object: into, Place: source.Place{File: r.file, Document: r.doc.number, Line: r.doc.first(), Item: at}}
	var meta *metav1.ObjectMeta
	switch v := into.(type) {
	case *corev1.Service:
		o.Kind, meta = source.Service, &v.ObjectMeta
	case *discoveryv1.EndpointSlice:
		o.Kind, meta = source.EndpointSlice, &v.ObjectMeta
		r.warnUnowned(at, v)
	case *corev1.Node:
		o.Kind, meta = source.Node, &v.ObjectMeta
	case *networkingv1.ServiceCIDR:
		o.Kind, meta = source.ServiceCIDR, &v.ObjectMeta
	}
	if !r.named(at, meta, o.Kind != source.Node && o.Kind != source.ServiceCIDR) {
		return
	}
	o.Name = model.Name{Namespace: meta.Namespace, Name: meta.Name}
	r.objects = append(r.objects, o)
}

// named checks the name and fills in the namespace that a left out one stands for.
func (r *reader) named(at string, meta *metav1.ObjectMeta, namespaced bool) bool {
	if wrong := validation.IsDNS1123Subdomain(meta.Name); len(wrong) > 0 {
		r.wrong(join(at, "metadata.name"), "BadName", "%q is no name of an object: %s", meta.Name, wrong[0])
		return false
	}
	switch {
	case !namespaced:
		meta.Namespace = ""
	case meta.Namespace == "":
		meta.Namespace = corev1.NamespaceDefault
	default:
		if wrong := validation.IsDNS1123Label(meta.Namespace); len(wrong) > 0 {
			r.wrong(join(at, "metadata.namespace"), "BadName", "%q is no name of a namespace: %s", meta.Namespace, wrong[0])
			return false
		}
	}
	return true
}

// warnUnowned names a slice that belongs to nothing. In a cluster it may have another
// purpose; in this folder it has none.
func (r *reader) warnUnowned(at string, es *discoveryv1.EndpointSlice) {
	if es.Labels[discoveryv1.LabelServiceName] == "" {
		r.note(join(at, "metadata.labels"), "NoService", "the EndpointSlice belongs to no Service; add the label %s", discoveryv1.LabelServiceName)
	}
}

// strict decodes into what it is given: its scheme is empty, so that it knows no other
// types.
var strict = func() *jsonserializer.Serializer {
	none := runtime.NewScheme()
	return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, none, none, jsonserializer.SerializerOptions{Strict: true})
}()

// strictly decodes, and takes no field that the type does not have.
func (r *reader) strictly(at string, text []byte, into runtime.Object) bool {
	_, _, err := strict.Decode(text, nil, into)
	if err == nil {
		return true
	}
	for _, f := range faults(err) {
		r.wrong(join(at, f.field), "BadField", "%s; %s", f.message, f.remedy)
	}
	return false
}

func join(at, field string) string {
	switch {
	case at == "":
		return field
	case field == "":
		return at
	}
	return at + "." + field
}
