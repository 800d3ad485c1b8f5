package dir

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheFolderOfTheHowTo: what people are told to write is right.
func TestTheFolderOfTheHowTo(t *testing.T) {
	b, err := os.ReadFile("../../../docs/how-to/run-on-a-node.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)demo\.yaml <<'END'\n(.*?)\nEND\n`).FindSubmatch(b)
	if found == nil {
		t.Fatal("the page has no demo.yaml")
	}
	want := "Node worker-1\nService default/web\nEndpointSlice default/web-ipv4\nEndpointSlice default/web-ipv6\n"
	if d := cmp.Diff(want, decoded(string(found[1]))); d != "" {
		t.Errorf("objects and Problems (-want +got):\n%s", d)
	}
}
