package manifests

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"
)

var ports = []Port{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080}, {Name: "echo", Protocol: corev1.ProtocolUDP, Port: 8080}}

var cast = []Endpoint{
	{Pod: "web-1", Node: "n1", Zone: "a", Addr4: netip.MustParseAddr("10.244.1.11"), Addr6: netip.MustParseAddr("fd00:10:244:1::11")},
	{Pod: "web-2", Node: "n1", Zone: "a", Addr4: netip.MustParseAddr("10.244.1.12"), Addr6: netip.MustParseAddr("fd00:10:244:1::12")},
	{Pod: "web-3", Node: "n2", Zone: "b", Addr4: netip.MustParseAddr("10.244.2.11"), Addr6: netip.MustParseAddr("fd00:10:244:2::11")},
}

func read(t *testing.T, b []byte) (out []discoveryv1.EndpointSlice) {
	t.Helper()
	for document := range strings.SplitSeq(string(b), "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var s discoveryv1.EndpointSlice
		if err := yaml.UnmarshalStrict([]byte(document), &s); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		out = append(out, s)
	}
	return out
}

// The embedded endpoints of web are exactly what Slices writes for the same pods, so that
// an act that writes them again changes nothing.
func TestEmbeddedEndpointsAreWhatSlicesWrites(t *testing.T) {
	embedded, err := Files.ReadFile("web-endpoints.yaml")
	if err != nil {
		t.Fatal(err)
	}
	written, err := Slices("web", ports, cast)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(t, embedded), read(t, written)); diff != "" {
		t.Error(diff)
	}
}

// Each state sets the three conditions as Kubernetes does.
func TestStates(t *testing.T) {
	for state, want := range map[State][3]bool{
		Ready:    {true, true, false},
		NotReady: {false, false, false},
		Draining: {false, true, true},
		Gone:     {false, false, true},
	} {
		e := cast[0]
		e.State = state
		c := e.in(e.Addr4).Conditions
		if got := [3]bool{*c.Ready, *c.Serving, *c.Terminating}; got != want {
			t.Errorf("state %d: ready, serving, terminating %v, want %v", state, got, want)
		}
	}
}

// A Service scaled to nothing keeps its slices.
func TestNoEndpoints(t *testing.T) {
	b, err := Slices("web", ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := read(t, b); len(s) != 2 || len(s[0].Endpoints)+len(s[1].Endpoints) != 0 {
		t.Errorf("%s", b)
	}
}

// Save replaces a file whole and leaves no other file.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"a: 1\n", "a: 2\n"} {
		if err := Save(dir, "x.yaml", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(filepath.Join(dir, "x.yaml")); string(b) != content {
			t.Errorf("content %q, want %q", b, content)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files %v, want one", files)
	}
	if err := Save(filepath.Join(dir, "absent"), "x.yaml", nil); err == nil || !strings.Contains(err.Error(), "x.yaml") {
		t.Errorf("a missing folder: %v, want an error that names the file", err)
	}
}
