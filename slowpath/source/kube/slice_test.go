package kube

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lace-cni.io/lace/control/model"
)

// TestWatchThatIsBehind: a slice was labelled and unlabelled again while the watch of those
// without a label was behind. What that one says of the time before is not delivered.
func TestWatchThatIsBehind(t *testing.T) {
	s := newSlices()
	name := model.Name{Namespace: "demo", Name: "web-1"}
	for _, step := range []struct {
		says    string
		watch   int
		version string
		there   bool
		want    string // version that is delivered; "gone"; "": nothing is
	}{
		{"labelled at 117", headless, "117", true, "117"},
		{"and no more at 126", headless, "126", false, "gone"},
		{"the other watch comes to 110", served, "110", true, ""},
		{"to 115", served, "115", true, ""},
		{"to 117, where the label took it away", served, "117", false, ""},
		{"and to 126, where it came back", served, "126", true, "126"},
	} {
		n := news{name: name, version: step.version}
		if step.there {
			n.object = &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name.Name, ResourceVersion: step.version}}
		}
		got := ""
		if c, ok := s.join(step.watch, n); ok && c.Object == nil {
			got = "gone"
		} else if ok {
			got = c.Object.(*discoveryv1.EndpointSlice).ResourceVersion
		}
		if got != step.want {
			t.Errorf("%s: delivered %q, want %q", step.says, got, step.want)
		}
	}
}

// TestFirstListIsNoRewind: what the other watches know stands when a watch has read its first
// list.
func TestFirstListIsNoRewind(t *testing.T) {
	var kinds []list
	s := newShelf(nil, func(_ []news, l list) { kinds = append(kinds, l) })
	for _, version := range []string{"100", "120", "90"} {
		if err := s.Replace(nil, version); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != 3 || kinds[0] != whole || kinds[1] != whole || kinds[2] != rewind {
		t.Errorf("the lists are %v, want whole, whole, rewind", kinds)
	}
}
