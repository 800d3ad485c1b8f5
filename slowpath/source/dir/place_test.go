package dir

import (
	"fmt"
	"strings"
	"testing"

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
		got := placeText(x.folder.delivered.Of(model.Problem{Kind: "Service", Object: "demo/web", Reason: "BadPort"}))
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
	x.want("the same in a later file", 0, "!c.yaml DuplicateObject")
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
		{"a file, which it names itself", model.Problem{Kind: "File", Object: "a.yml document 3"}, ""},
		{"nothing", model.Problem{}, ""},
	} {
		if got := placeText(r.Places.Of(c.p)); got != c.want {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}
