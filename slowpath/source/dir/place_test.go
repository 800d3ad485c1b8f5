package dir

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/source"
)

func placeText(p source.Place) string { return api.Place(p).String() }

// Where an object is written is known as the folder is now, also when the object itself has not
// changed and nobody is told of anything.
func TestPlacesFollowTheFolder(t *testing.T) {
	x := newTester(t)
	at := func(what, want string) {
		t.Helper()
		got := placeText(x.folder.places.Of(model.Problem{Kind: "Service", Object: "demo/web", Reason: "BadPort"}))
		if got != want {
			t.Errorf("%s: it is at %q, want %q", what, got, want)
		}
	}
	at("before the first look", "")
	x.write("b.yaml", serviceText)
	x.want("it is written", 0, "+demo/web")
	at("it is written", "b.yaml document 1 line 1")
	x.write("b.yaml", "# it moves down\n\n"+serviceText)
	x.want("another line", 0, "")
	at("another line", "b.yaml document 1 line 3")
	x.write("b.yaml", node("n1")+"---\n"+serviceText)
	x.want("another document", 0, "+n1")
	at("another document", fmt.Sprintf("b.yaml document 2 line %d", strings.Count(node("n1"), "\n")+2))
	x.write("c.yaml", serviceText)
	x.want("the same in a later file", 0, "!c.yaml document 1 DuplicateObject")
	at("the first file by name has it", fmt.Sprintf("b.yaml document 2 line %d", strings.Count(node("n1"), "\n")+2))
	x.write("b.yaml", node("n1"))
	x.want("another file", 0, "")
	at("another file", "c.yaml document 1 line 1")
	x.write("c.yaml", "kind: [\n")
	x.want("its file is wrong", 0, "!c.yaml document 1 NotYAML")
	at("it stays, and has the place that it had", "c.yaml document 1 line 1")
	x.remove("c.yaml")
	x.look(0)
	x.want("it is removed", x.again, "-demo/web")
	at("it is removed", "")
}

// What could not be read is where it is written, and follows it when it moves. It stays the Problem
// that it is, so that nobody is told again.
func TestPlacesOfWhatCannotBeRead(t *testing.T) {
	x := newTester(t)
	places := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range x.folder.problems {
			got = append(got, p.Reason+": "+placeText(x.folder.places.Of(p)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	wrong := "kind: NodeList\napiVersion: v1\nitems:\n- metadata: {name: n1}\n- metadata: {name: n2, nam: x}\n"
	x.write("a.yaml", "kind: [\n---\n"+wrong)
	x.write("b.yaml", "")
	x.write("c.yaml", node("n1"))
	x.look(0)
	want := []string{"NotYAML: a.yaml document 1 line 1", "BadField: a.yaml document 2 line 7 items[1]", "Empty: b.yaml", "DuplicateObject: c.yaml document 1 line 1"}
	places("a document, a field, a file and an object twice", want...)
	before := x.folder.problems[1]
	x.write("a.yaml", "kind: [\n---\n\n"+wrong)
	x.look(0)
	if p := x.folder.problems[1]; p != before {
		t.Errorf("moved, it is %+v, and was %+v", p, before)
	}
	want[1] = "BadField: a.yaml document 2 line 8 items[1]"
	places("moved", want...)
	x.write("c.yaml", "# the other one\n"+node("n1"))
	x.look(0)
	want[3] = "DuplicateObject: c.yaml document 1 line 2"
	places("the other one moved", want...)
	if p := x.folder.problems[3]; p.Message != "Node n1 is at a.yaml document 2 line 4 items[0] too, which is used; remove it from one of the two places" {
		t.Errorf("%+v: want both places", p)
	}
	if err := os.RemoveAll(x.dir); err != nil {
		t.Fatal(err)
	}
	x.look(time.Minute)
	if p := x.folder.problems[0]; p.Reason != "FolderUnreadable" || placeText(x.folder.places.Of(p)) != "" {
		t.Errorf("%+v: want one of the folder, which is at no place in it", p)
	}
}

// Two that say the same, in one list, have a place each.
func TestOneObjectTwiceInAList(t *testing.T) {
	r, err := Read(t.Context(), folderOf(t, map[string]string{"l.yaml": "kind: NodeList\napiVersion: v1\nitems: [{metadata: {name: n1}}, {metadata: {name: n1}}, {metadata: {name: n1}}]\n"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.Problems {
		got = append(got, placeText(r.Places.Of(p)))
	}
	if d := cmp.Diff([]string{"l.yaml document 1 line 1 items[1]", "l.yaml document 1 line 1 items[2]"}, got); d != "" {
		t.Errorf("places (-want +got):\n%s", d)
	}
}

// A Problem has the place of the object that it is about, and none where it is about something
// else of that name.
func TestWhichProblemsHaveAPlace(t *testing.T) {
	r, err := Read(t.Context(), folderOf(t, readFiles))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		about string
		p     model.Problem
		want  string
	}{
		{"a Service", model.Problem{Kind: "Service", Object: "demo/web", Field: "spec.ports"}, "b.yaml document 1 line 4"},
		{"a Service as a whole", model.Problem{Kind: "Service", Object: "demo/other"}, "z.yaml document 1 line 1"},
		{"a Service that is not there", model.Problem{Kind: "Service", Object: "demo/third"}, ""},
		{"an EndpointSlice", model.Problem{Kind: "EndpointSlice", Object: "demo/web-1", Field: "endpoints[0]"}, "b.yaml document 2 line 11"},
		{"a field of a Node", model.Problem{Kind: "Node", Object: "n0", Field: "status.addresses[0].address"}, "l.json document 1 line 1 items[0]"},
		{"the machine", model.Problem{Kind: "Node", Object: "n0", Reason: "FastpathDown"}, ""},
		{"the agent's settings", model.Problem{Kind: "Node", Object: "n0", Field: "serviceCIDRs"}, ""},
		{"a device", model.Problem{Kind: "Port", Object: "n0"}, ""},
		{"a file of which nothing is wrong", model.Problem{Kind: "File", Object: "a.yml document 3"}, ""},
		{"nothing", model.Problem{}, ""},
	} {
		if got := placeText(r.Places.Of(c.p)); got != c.want {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}
