package dir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

const (
	serviceText = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: demo}\nspec:\n  clusterIP: 10.96.0.10\n  ports: [{port: 80}]\n"
	sliceText   = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, namespace: demo, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.244.1.5]}]\n"
	nodeText    = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
)

// decoded writes what Decode found: objects, then Problems with field and reason.
func decoded(text string) string {
	var b strings.Builder
	objects, problems := Decode("f.yaml", []byte(text))
	for _, o := range objects {
		fmt.Fprintf(&b, "%s %s\n", o.Kind, nameFor(&o))
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "! %s %s %s\n", p.Object, p.Field, p.Reason)
	}
	return b.String()
}

func TestDecode(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"any mix of kinds and documents", serviceText + "---\n" + sliceText + "---\n" + nodeText,
			"Service demo/web\nEndpointSlice demo/web-1\nNode n1\n"},
		{"no namespace means default; a node has none", strings.ReplaceAll(serviceText, ", namespace: demo", "") + "---\n" + strings.ReplaceAll(nodeText, "n1", "n1, namespace: x"),
			"Service default/web\nNode n1\n"},
		{"JSON is YAML", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`, "Node n1\n"},
		{"braces that are not JSON are YAML", "{apiVersion: v1, kind: Node, metadata: {name: n1}}", "Node n1\n"},
		{"status is taken", serviceText + "status: {loadBalancer: {ingress: [{ip: 203.0.113.1}]}}\n", "Service demo/web\n"},
		{"a list of different kinds", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n- {apiVersion: v1, kind: Service, metadata: {name: web}}\n",
			"Node n1\nService default/web\n"},
		{"items of a typed list need not say what they are", "apiVersion: v1\nkind: NodeList\nmetadata: {resourceVersion: '7'}\nitems: [{metadata: {name: n1}}, {metadata: {name: n2}}]\n",
			"Node n1\nNode n2\n"},
		{"a list of slices", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSliceList\nitems: [{metadata: {name: s, labels: {kubernetes.io/service-name: web}}, addressType: IPv4}]\n",
			"EndpointSlice default/s\n"},
		{"a wrong item costs itself only", "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: n1}}, {metadata: {nam: n2}}, {metadata: {name: n3}}]\n",
			"Node n1\nNode n3\n! f.yaml document 1 items[1].metadata.nam BadField\n"},
		{"an item that is no object", "apiVersion: v1\nkind: NodeList\nitems: [3]\n", "! f.yaml document 1 items[0] NotAnObject\n"},
		{"an item that is null costs itself only", "apiVersion: v1\nkind: NodeList\nitems: [null, {metadata: {name: n2}}]\n",
			"Node n2\n! f.yaml document 1 items[0] NotAnObject\n"},
		{"a wrong document costs itself only", serviceText + "---\nkind: [\n---\n" + nodeText,
			"Service demo/web\nNode n1\n! f.yaml document 2  NotYAML\n"},
		{"a field that does not exist", strings.ReplaceAll(serviceText, "ports:", "prots:"), "! f.yaml document 1 spec.prots BadField\n"},
		{"a field in the wrong case", strings.ReplaceAll(serviceText, "clusterIP", "clusterIp"), "! f.yaml document 1 spec.clusterIp BadField\n"},
		{"two fields that do not exist", strings.ReplaceAll(serviceText, "clusterIP", "clusterIp") + "spce: {}\n",
			"! f.yaml document 1 spce BadField\n! f.yaml document 1 spec.clusterIp BadField\n"},
		{"a field twice", strings.ReplaceAll(serviceText, "spec:", "spec:\n  clusterIP: 10.96.0.11"), "! f.yaml document 1  NotYAML\n"},
		{"a field twice in JSON", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","name":"n2"}}`, "! f.yaml document 1 metadata.name BadField\n"},
		{"text where a number is wanted", strings.ReplaceAll(serviceText, "port: 80", "port: http"), "! f.yaml document 1 spec.ports.port BadField\n"},
		{"a number that is too large", strings.ReplaceAll(serviceText, "port: 80", "port: 99999999999"), "! f.yaml document 1 spec.ports.port BadField\n"},
		{"a kind that is not read", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", "! f.yaml document 1 kind UnknownKind\n"},
		{"an old version of a kind", strings.ReplaceAll(sliceText, "discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"), "! f.yaml document 1 apiVersion UnknownVersion\n"},
		{"no kind", "apiVersion: v1\nmetadata: {name: x}\n", "! f.yaml document 1 kind NoKind\n"},
		{"text", "hello\n", "! f.yaml document 1  NotAnObject\n"},
		{"a list without a kind", "- a\n- b\n", "! f.yaml document 1  NotAnObject\n"},
		{"null", "null\n", "! f.yaml document 1 kind NoKind\n"},
		{"a list in a list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List}]\n", "! f.yaml document 1 items[0].kind NestedList\n"},
		{"no name", strings.ReplaceAll(serviceText, "name: web, ", ""), "! f.yaml document 1 metadata.name BadName\n"},
		{"a name that would confuse a terminal", strings.ReplaceAll(serviceText, "name: web", `name: "a\e[2J"`), "! f.yaml document 1 metadata.name BadName\n"},
		{"a wrong namespace", strings.ReplaceAll(serviceText, "demo", "De/mo"), "! f.yaml document 1 metadata.namespace BadName\n"},
		{"a slice of no Service is named and read", strings.ReplaceAll(sliceText, "kubernetes.io/service-name", "app"),
			"EndpointSlice demo/web-1\n! f.yaml document 1 metadata.labels NoService\n"},
		{"aliases that would fill the memory", bomb(), "! f.yaml document 1  NotYAML\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, decoded(tc.in)); d != "" {
				_, problems := Decode("f.yaml", []byte(tc.in))
				t.Errorf("decoded (-want +got):\n%s%v", d, problems)
			}
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestMessages(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"lines are those of the file", nodeText + "---\na: 1\nb: [\nc: 2\n", "f.yaml document 2 line 7: did not find expected ',' or ']'; correct the document"},
		{"a type is named as people call it", strings.ReplaceAll(serviceText, "port: 80", "port: http"), "a string where a whole number up to 2147483647 is wanted"},
		{"a number that is none of those wanted is shown", strings.ReplaceAll(serviceText, "port: 80", "port: 3.5"), "the number 3.5 where a whole number up to"},
		{"a list where a text is wanted", strings.ReplaceAll(serviceText, "  clusterIP: ", "  type: [a]\n  clusterIP: "), "a list where a string is wanted"},
		{"a name without end is cut", strings.ReplaceAll(serviceText, "name: web", "name: "+strings.Repeat("w", 100_000)), "… (100000 bytes)\" is no name"},
		{"a kind without end is cut", "apiVersion: v1\nkind: " + strings.Repeat("K", 100_000), "… (100000 bytes)\" is not read"},
		{"the version that is read is said", strings.ReplaceAll(sliceText, "k8s.io/v1", "k8s.io/v1beta1"), "write apiVersion: discovery.k8s.io/v1"},
		{"the document is found by its line", nodeText + "---\n" + "kind: Pod\n", "f.yaml document 2 line 5: \"Pod\""},
		{"a document that names nothing is found by where it begins", nodeText + "---\n" + "spec: {}\n", "f.yaml document 2 line 5: the object"},
		{"object and line are named, and the path is not said again", strings.ReplaceAll(serviceText, "ports:", "prots:"), "line 6: Service demo/web: unknown field; correct or remove it"},
		{"a field whose name is in several lines", strings.ReplaceAll(serviceText+"status: {}\n", "metadata: {", "metadata: {ports: 1, "), "line 1: Service demo/web: unknown field;"},
		{"an object without a good name is named by its kind", strings.ReplaceAll(serviceText, "name: web", `name: "a\e[2J"`), "line 3: Service: \"a"},
		{"a namespace that is left out is default", strings.ReplaceAll(serviceText, ", namespace: demo}", ", labls: {}}"), "line 3: Service default/web: "},
		{"an object of the second document", serviceText + "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, nam: n2}\n", "f.yaml document 2 line 10: Node n1: "},
		{"an item of a list", "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: n1}\n- metadata: {name: n2}\n  spce: {}\n", "f.yaml document 1 line 6 items[1]: Node n2: "},
		{"an item that is null", "apiVersion: v1\nkind: List\nitems: [null]\n", "line 3 items[0]: the item is null, which is no Kubernetes object; write one, or remove the item"},
		{"the list itself", "apiVersion: v1\nkind: NodeList\nitms: []\n", "f.yaml document 1 line 3: unknown field"},
		{"a word that YAML takes for true", strings.ReplaceAll(serviceText, "name: web", "name: y"), "line 3: Service: true or false where a string is wanted; quote it"},
		{"a number where a string is wanted", strings.ReplaceAll(serviceText, "name: web", "name: 8080"), "line 3: Service: a number where a string is wanted; quote it"},
		{"a list where a string is wanted is not to be quoted", strings.ReplaceAll(serviceText, "name: web", "name: [web]"), "a list where a string is wanted; correct or remove it"},
		{"a key twice", nodeText + "---\n" + serviceText + "  ports: []\n", "f.yaml document 2 line 11: key \"ports\" already set in map; correct the document"},
		{"two keys twice", nodeText + "---\n" + serviceText + "  ports: []\nkind: Service\n", "f.yaml document 2 line 11: key \"ports\" already set in map, line 12: key \"kind\" already set in map; correct the document"},
		{"several unknown fields are a Problem each", strings.ReplaceAll(serviceText, "clusterIP", "clusterIp") + "spce: {}\n", "unknown field;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var found problems
			for _, d := range split([]byte(tc.in)) {
				found = append(found, decodeDocument("f.yaml", d).problems...)
			}
			if len(found) == 0 {
				t.Fatal("no Problem")
			}
			for _, p := range found {
				if said := p.place.String() + ": " + p.Message; !strings.Contains(said, tc.want) || strings.Contains(said, "\n") || strings.Contains(p.Field, ".") && strings.Contains(p.Message, p.Field) {
					t.Errorf("%+v, want %q in one line of place and message, and the field not said again", p, tc.want)
				}
			}
		})
	}
}

// FuzzDecode: nothing panics, and every object that comes out can be used.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(serviceText + "---\n" + sliceText + "---\n" + nodeText))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":1}]}}`))
	f.Add([]byte("--- {a: &x [1], b: *x}\n---\n...\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		objects, problems := Decode("f.yaml", b)
		for _, o := range objects {
			checkObject(t, &o)
		}
		for _, p := range problems {
			if p.Kind == "" || p.Object == "" || p.Reason == "" || p.Message == "" {
				t.Errorf("incomplete Problem %+v", p)
			}
		}
		if len(objects)+len(problems) == 0 && len(split(b)) > 0 && !strings.Contains(string(b), "List") {
			t.Errorf("a document without object and without Problem: %q", b)
		}
	})
}

func checkObject(t *testing.T, o *Object) {
	t.Helper()
	ok := o.Name.Name != "" && (o.Name.Namespace != "") == (o.Kind != "Node")
	switch v := o.Object.(type) {
	case *corev1.Service:
		ok = ok && v.Name == o.Name.Name && v.Namespace == o.Name.Namespace
	case *discoveryv1.EndpointSlice:
		ok = ok && v.Name == o.Name.Name && v.Namespace == o.Name.Namespace
	case *corev1.Node:
		ok = ok && v.Name == o.Name.Name
	default:
		ok = false
	}
	if !ok {
		t.Errorf("unusable object %+v", o)
	}
}
