package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// folderOf writes files into a folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	path := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

var readFiles = map[string]string{
	"b.yaml": "# a comment\n---\n\n" + serviceText + "---\n" + sliceText,
	"a.yml":  nodeText + "--- # next\n# c\n" + nodeText + "---\nkind: [\n",
	"l.json": `{"apiVersion":"v1","kind":"List","items":[` + "\n" + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n0"}}]}`,
	"z.yaml": strings.ReplaceAll(serviceText, "web", "other") + "---\n" + serviceText,
	"n.txt":  nodeText,
}

// Every object is read once, from the place from which it is taken, and every Problem is named.
func TestReadNamesThePlaceOfEachObject(t *testing.T) {
	r, err := Read(t.Context(), folderOf(t, readFiles))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range r.Objects {
		got = append(got, fmt.Sprintf("%s %s: %s", o.Kind, nameFor(&o), placeText(o.Place)))
	}
	for _, p := range r.Problems {
		got = append(got, "! "+p.Object+" "+p.Reason)
	}
	want := []string{
		"EndpointSlice demo/web-1: b.yaml document 2 line 11",
		"Node n0: l.json document 1 line 1 items[0]",
		"Node n1: a.yml document 1 line 1",
		"Service demo/other: z.yaml document 1 line 1",
		"Service demo/web: b.yaml document 1 line 4",
		"! a.yml document 3 NotYAML", "! a.yml document 2 DuplicateObject", "! z.yaml document 2 DuplicateObject",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("objects and Problems (-want +got):\n%s", d)
	}
}

// What is read at once is what a Dir delivers, a file that was written a moment ago included.
func TestReadIsWhatADirDelivers(t *testing.T) {
	path := folderOf(t, readFiles)
	r, err := Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	d := newFolder(path, DefaultSettle)
	now := time.Now().Add(time.Minute) // all is quiet by then
	out := d.look(now, now)
	if len(out.changes) != len(r.Objects) {
		t.Fatalf("%d changes, and %d objects are read", len(out.changes), len(r.Objects))
	}
	for i, c := range out.changes {
		o := r.Objects[i]
		if o.Kind != c.Kind || o.Name != c.Name || cmp.Diff(c.Object, o.Object) != "" {
			t.Errorf("change %d is %s %s, object %d is %s %s (-delivered +read):\n%s", i, c.Kind, c.Name, i, o.Kind, o.Name, cmp.Diff(c.Object, o.Object))
		}
	}
	if d := cmp.Diff(out.problems, r.Problems); d != "" {
		t.Errorf("Problems (-delivered +read):\n%s", d)
	}
}

// What cannot be read at all is an error that names it, not an empty folder; a pipe is not
// waited for.
func TestReadOfNoFolder(t *testing.T) {
	path := folderOf(t, map[string]string{"file": ""})
	pipe := filepath.Join(path, "pipe")
	if err := mkfifo(pipe); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, says string }{
		{filepath.Join(path, "nothing"), "no such file"},
		{filepath.Join(path, "file"), "it is no folder"},
		{pipe, "it is no folder"},
	} {
		r, err := Read(t.Context(), c.path)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %+v, error %v; want one with %q", c.path, r, err, c.says)
		}
	}
	crowd := make(map[string]string)
	for i := range MaxEntries + 1 {
		crowd[fmt.Sprint(i)] = ""
	}
	if _, err := Read(t.Context(), folderOf(t, crowd)); err == nil || !strings.Contains(err.Error(), "16384 entries") {
		t.Errorf("a folder with too many entries: error %v", err)
	}
}
