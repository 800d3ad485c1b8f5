package dir

import (
	"bytes"
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

func jsonNode(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, name)
}

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
		{"JSON objects one after the other are read each", jsonNode("n1") + " " + jsonNode("n2") + "\n" + jsonNode("n3"), "Node n1\nNode n2\nNode n3\n"},
		{"a wrong JSON object costs itself only", jsonNode("n1") + `{"kind":"Pod"}` + jsonNode("n3"), "Node n1\nNode n3\n! f.yaml document 2 kind UnknownKind\n"},
		{"what follows JSON and is no object is named", jsonNode("n1") + " garbage\n", "Node n1\n! f.yaml document 2  NotAnObject\n"},
		{"braces and commas that follow JSON are named", jsonNode("n1") + ",\n" + jsonNode("n2") + "]\n", "Node n1\n! f.yaml document 2  NotYAML\n"},
		{"JSON that breaks off", jsonNode("n1") + jsonNode("n2")[:20], "Node n1\n! f.yaml document 2  NotYAML\n"},
		{"YAML below JSON", jsonNode("n1") + "\n" + nodeText, "Node n1\nNode n1\n"},
		{"a document behind three dots is read", nodeText + "...\n" + serviceText, "Node n1\nService demo/web\n"},
		{"garbage behind three dots is named", nodeText + "...\ngarbage\n", "Node n1\n! f.yaml document 2  NotAnObject\n"},
		{"what follows the brace that closes a document", "{apiVersion: v1, kind: Node, metadata: {name: n1}} garbage\n", "! f.yaml document 1  NotYAML\n"},
		{"what is indented less than the document", "  apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\nspec: {}\n", "! f.yaml document 1  NotYAML\n"},
		{"a directive within a document", nodeText + "%YAML 1.2\nspec: {}\n", "! f.yaml document 1  NotYAML\n"},
		{"line breaks of another kind", strings.ReplaceAll(nodeText+"---\n"+serviceText, "\n", "\r"), "! f.yaml document 1  NotYAML\n"},
		{"line breaks of another kind below a comment", "# c\r" + strings.ReplaceAll(nodeText, "\n", "\r"), "Node n1\n"},
		{"line breaks of another system", strings.ReplaceAll(nodeText+"...\n"+serviceText, "\n", "\r\n"), "Node n1\nService demo/web\n"},
		{"a document that is indented", "  apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\n# c\n", "Node n1\n"},
		{"keys in quotes", "\"apiVersion\": v1\n'kind': Node\nmetadata: {name: n1}\n", "Node n1\n"},
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
		{"the line of what follows a document", nodeText + "---\n{apiVersion: v1,\nkind: Node}\n\n# c\n\nspec: {}\n", "line 10: the document has ended before this, which is not read; correct"},
		{"and when it is the line where the document ends", nodeText + "---\n{kind: Node} garbage\n", "line 5: the document has ended before this"},
		{"the line of what follows JSON", jsonNode("n1") + "\n\n%\n", "line 3: could not find"},
		{"a second document at a line break that is none", "a: 1\r---\rb: 1\n", "a second document begins at a line break that is no line feed"},
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

// FuzzDecode: nothing panics, every object that comes out can be used, and nothing that the text
// holds is passed by.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(serviceText + "---\n" + sliceText + "---\n" + nodeText))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":1}]}}`))
	f.Add([]byte(jsonNode("n1") + jsonNode("n2") + "\n# c\n" + jsonNode("n3") + "}\n"))
	f.Add([]byte(jsonNode("n1") + "\n%TAG ! x:\n---\n" + nodeText + "...\n" + nodeText))
	f.Add([]byte("  apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\nspec: {}\n"))
	f.Add([]byte("{apiVersion: v1, kind: Node, metadata: {name: n1}}\r---\rkind: Node\r"))
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
		checkNothingIsLost(t, b, len(objects) > 0 && len(problems) == 0)
		if len(objects)+len(problems) == 0 && len(split(b)) > 0 && !strings.Contains(string(b), "List") {
			t.Errorf("a document without object and without Problem: %q", b)
		}
	})
}

// checkNothingIsLost: a Node that is written below the text is read, a brace that closes nothing is
// named, and what is taken to be read to its end is.
func checkNothingIsLost(t *testing.T, b []byte, right bool) {
	t.Helper()
	for _, mark := range []string{"---", "..."} {
		objects, _ := Decode("f.yaml", []byte(string(b)+"\n"+mark+"\n"+nodeText))
		if n := len(objects); n == 0 || objects[n-1].Kind != "Node" || objects[n-1].Name.Name != "n1" {
			t.Errorf("the Node below %s is not read: %+v", mark, objects)
		}
	}
	wide := bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) // two bytes are a letter there
	if _, problems := Decode("f.yaml", append(bytes.Clone(b), "\n}"...)); right && !wide && len(problems) == 0 {
		t.Error("a brace at the end is passed by")
	}
	for _, d := range split(b) {
		if text, err := toJSON(d.text); err == nil && d.json == nil && text[0] == '{' && beyond(d.text) != nil {
			t.Errorf("it is taken to be whole: %v", beyond(d.text))
		}
	}
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
