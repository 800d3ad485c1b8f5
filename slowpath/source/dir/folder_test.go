package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/source"
)

// tester is a folder under a clock of its own: looks happen when the test says.
type tester struct {
	t      *testing.T
	dir    string
	folder *folder
	now    time.Time
	again  time.Duration
	quiet  bool // files are quiet when they are written, as a rule
}

func newTester(t *testing.T) *tester {
	dir := t.TempDir()
	return &tester{t: t, dir: dir, folder: newFolder(dir, 50*time.Millisecond), now: time.Now(), quiet: true}
}

// write puts a file that was last touched long ago, or right now.
func (x *tester) write(name, text string) {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
	at := x.now
	if x.quiet {
		at = at.Add(-time.Minute)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		x.t.Fatal(err)
	}
}

func (x *tester) remove(name string) {
	x.t.Helper()
	if err := os.Remove(filepath.Join(x.dir, name)); err != nil {
		x.t.Fatal(err)
	}
}

// look lets time pass, looks, and writes what was delivered: "+" for an object that came
// or changed, "-" for one that went, "!" for each Problem that there is.
func (x *tester) look(after time.Duration) string {
	x.now = x.now.Add(after)
	out := x.folder.look(x.now, x.now)
	x.again = out.again
	var lines []string
	for _, c := range out.changes {
		sign := "+"
		if c.Object == nil {
			sign = "-"
		}
		lines = append(lines, sign+nameFor(&Object{Name: c.Name}))
	}
	for _, p := range out.problems {
		lines = append(lines, strings.TrimSpace("!"+strings.TrimPrefix(p.Object, x.dir)+" "+p.Reason))
	}
	return strings.Join(lines, ", ")
}

func (x *tester) want(what string, after time.Duration, want string) {
	x.t.Helper()
	if d := cmp.Diff(want, x.look(after)); d != "" {
		x.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// settled looks until nothing is pending.
func (x *tester) settled(what, want string) {
	x.t.Helper()
	x.want(what+": it may be on its way back", 0, "")
	x.want(what, x.again, want)
}

func node(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n", name)
}

func labelled(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {v: %q}}\n", name, value)
}

func TestObjectsFollowTheirFiles(t *testing.T) {
	x := newTester(t)
	x.want("an empty folder", 0, "")
	x.write("a.yaml", node("n1")+"---\n"+node("n2"))
	x.write("b.yml", node("n3"))
	x.write("c.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n4"}}`)
	x.write(".hidden.yaml", node("x1"))
	x.write("notes.txt", node("x2"))
	x.write("a.yaml~", node("x3"))
	if err := os.Mkdir(filepath.Join(x.dir, "sub.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	x.want("files come", 0, "+n1, +n2, +n3, +n4")
	x.want("nothing changes", time.Second, "")
	x.write("a.yaml", node("n1")+"---\n"+labelled("n2", "new"))
	x.want("one of two documents changes", 0, "+n2")
	x.write("a.yaml", labelled("n2", "new"))
	x.want("a document goes", 0, "-n1")
	x.write("a.yaml", "# nothing here any more\n")
	x.want("all documents of a file go", 0, "-n2")
	x.remove("b.yml")
	x.settled("a file goes", "-n3")
	x.write("c.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n4"} }`)
	x.want("only the spelling changes", 0, "")
}

func TestWrongFileKeepsItsObjects(t *testing.T) {
	good := node("n1") + "---\n" + node("n2") + "---\n" + node("n3")
	for _, tc := range []struct{ name, text, want string }{
		{"cut short in a document", good[:len(good)-20], "!a.yaml document 3 NotYAML"},
		{"cut short so that a field is missing", node("n1") + "---\napiVersion: v1\nkind: Node\n", "!a.yaml document 2 BadName"},
		{"empty", "", "!a.yaml Empty"},
		{"space only", "\n \n", "!a.yaml Empty"},
		{"a slip of the pen, and a change beside it", labelled("n1", "new") + "---\n" + strings.Replace(node("n2"), "metadata", "metdata", 1), "+n1, !a.yaml document 2 BadField"},
		{"not text at all", "\x00\x01\x02", "!a.yaml document 1 NotYAML"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := newTester(t)
			x.write("a.yaml", good)
			x.write("b.yaml", node("n9"))
			x.want("right", 0, "+n1, +n2, +n3, +n9")
			x.write("a.yaml", tc.text)
			x.want("wrong", 0, tc.want)
			x.write("b.yaml", labelled("n9", "new"))
			problem := strings.TrimPrefix(tc.want, "+n1, ")
			x.want("other files go on", 0, "+n9, "+problem)
			x.write("a.yaml", node("n1"))
			if got := x.look(0); !strings.HasSuffix(got, "-n2, -n3") {
				t.Errorf("right again, with less: %q, want n2 and n3 gone and no Problem", got)
			}
		})
	}
}

func TestWrongFromTheStart(t *testing.T) {
	x := newTester(t)
	x.write("a.yaml", node("n1")+"---\nkind: [\n---\n"+node("n3"))
	x.want("the right documents are taken", 0, "+n1, +n3, !a.yaml document 2 NotYAML")
	x.remove("a.yaml")
	x.want("it may be on its way back", 0, "!a.yaml document 2 NotYAML")
	x.want("removed, it takes its objects and Problems along", x.again, "-n1, -n3")
}

func TestOneObjectInTwoPlaces(t *testing.T) {
	x := newTester(t)
	x.write("a.yaml", labelled("n1", "a")+"---\n"+labelled("n1", "again"))
	x.write("b.yaml", labelled("n1", "b"))
	x.want("the first file by name has it", 0, "+n1, !a.yaml document 2 DuplicateObject, !b.yaml document 1 DuplicateObject")
	x.write("a.yaml", node("n2"))
	x.want("let go by the first file, it is taken from the second", 0, "+n1, +n2")
	x.write("a.yaml", node("n2")+"---\n"+labelled("n1", "b"))
	x.want("the same in both: nothing to do", 0, "!b.yaml document 1 DuplicateObject")
	x.write("a.yaml", node("n2")+"---\nkind: [\n")
	x.want("what a wrong file said counts less than what a right one says", 0, "!a.yaml document 2 NotYAML")
	x.remove("a.yaml")
	x.look(0)
	x.want("without the wrong file", x.again, "-n2")
	left := x.folder.delivered[objectKey{source.Node, model.Name{Name: "n1"}}].Object.(*corev1.Node)
	if left.Labels["v"] != "b" {
		t.Errorf("what is left says %q, want what b.yaml says", left.Labels["v"])
	}
}

func TestAFileMustBeQuiet(t *testing.T) {
	x := newTester(t)
	x.quiet = false
	x.write("a.yaml", node("n1"))
	x.want("written just now", 0, "")
	x.want("for 30 ms", 30*time.Millisecond, "")
	x.write("a.yaml", node("n1")+"---\n"+node("n2"))
	x.want("written again", 30*time.Millisecond, "")
	x.want("quiet", x.again, "+n1, +n2")

	steps := 0
	for ; steps < 200; steps++ {
		x.write("a.yaml", labelled("n1", fmt.Sprint(steps)))
		if x.look(10*time.Millisecond) != "" {
			break
		}
	}
	if waited := time.Duration(steps) * 10 * time.Millisecond; waited < 500*time.Millisecond || waited > 1100*time.Millisecond {
		t.Errorf("a file that is never quiet was read after %v, want about a second", waited)
	}
}

func TestAFileThatIsAwayForAMoment(t *testing.T) {
	x := newTester(t)
	x.write("a.yaml", node("n1"))
	x.want("there", 0, "+n1")
	x.remove("a.yaml")
	x.want("away", 0, "")
	x.write("a.yaml", node("n1"))
	x.want("back", 10*time.Millisecond, "")
	x.want("and it stays", time.Second, "")
	x.remove("a.yaml")
	x.settled("away for good", "-n1")
}

func TestLinks(t *testing.T) {
	x := newTester(t)
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(target, []byte(node("n1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(x.dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	x.want("a link is followed", time.Minute, "+n1")
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	x.want("a link that leads nowhere keeps its objects", time.Minute, "!a.yaml Unreadable")
	x.remove("a.yaml")
	x.want("it may be on its way back", 0, "!a.yaml Unreadable")
	x.want("the link is removed", x.again, "-n1")
}

func TestLimits(t *testing.T) {
	t.Run("a file that is too large keeps its objects", func(t *testing.T) {
		x := newTester(t)
		x.folder.limits.fileSize = 200
		x.write("a.yaml", node("n1"))
		x.want("small", 0, "+n1")
		x.write("a.yaml", node("n1")+"#"+strings.Repeat(" ", 300))
		x.want("large", 0, "!a.yaml Unreadable")
	})
	t.Run("all files together", func(t *testing.T) {
		x := newTester(t)
		x.folder.limits.total = 80
		x.write("a.yaml", node("n1"))
		x.write("b.yaml", node("n2"))
		x.want("the last one is beyond", 0, "+n1, !b.yaml Unreadable")
	})
	t.Run("too many files: those that were there stay, the first others by name come in, and changes go on", func(t *testing.T) {
		x := newTester(t)
		x.folder.limits.files = 2
		x.write("c.yaml", node("n3"))
		x.want("one", 0, "+n3")
		x.write("a.yaml", node("n1"))
		x.write("b.yaml", node("n2"))
		x.want("three", 0, "+n1, ! TooManyFiles")
		x.write("c.yaml", labelled("n3", "new"))
		x.want("a change of one that is read", 0, "+n3, ! TooManyFiles")
		x.remove("c.yaml")
		x.want("room again for one, and the other may be on its way back", 0, "+n2")
		x.want("which it is not", x.again, "-n3")
	})
	t.Run("too many entries of any kind", func(t *testing.T) {
		x := newTester(t)
		x.folder.limits.entries = 2
		for i := range 3 {
			x.write(fmt.Sprint(i), "")
		}
		x.want("three", 0, "! FolderUnreadable")
	})
	t.Run("too many objects", func(t *testing.T) {
		x := newTester(t)
		x.folder.limits.objects = 2
		x.write("a.yaml", node("n1"))
		x.write("b.yaml", node("n2")+"---\n"+node("n3"))
		x.want("three", 0, "+n1, +n2, ! TooManyObjects")
		x.remove("a.yaml")
		x.want("it may be on its way back", 0, "! TooManyObjects")
		x.want("room again", x.again, "-n1, +n3")
	})
}

func TestFolderThatIsNotThere(t *testing.T) {
	x := newTester(t)
	x.write("a.yaml", node("n1"))
	x.want("there", 0, "+n1")
	if err := os.Rename(x.dir, x.dir+".away"); err != nil {
		t.Fatal(err)
	}
	x.want("away: objects stay", time.Minute, "! FolderUnreadable")
	if err := os.Rename(x.dir+".away", x.dir); err != nil {
		t.Fatal(err)
	}
	x.want("back", time.Minute, "")
}

// TestOrdinaryFilesOnly: a pipe must not hang the reader.
func TestOrdinaryFilesOnly(t *testing.T) {
	x := newTester(t)
	if err := mkfifo(filepath.Join(x.dir, "p.yaml")); err != nil {
		t.Fatal(err)
	}
	x.write("a.yaml", node("n1"))
	x.want("a pipe", 0, "+n1, !p.yaml Unreadable")
}

// TestOneDocumentAmongThousands: only it is parsed again.
func TestOneDocumentAmongThousands(t *testing.T) {
	x := newTester(t)
	docs := make([]string, 2000)
	for i := range docs {
		docs[i] = node(fmt.Sprintf("n%d", i))
	}
	x.write("a.yaml", strings.Join(docs, "---\n"))
	x.look(0)
	before := slices.Clone(x.folder.files[0].objects)
	docs[1000] = labelled("n1000", "new")
	x.write("a.yaml", strings.Join(docs, "---\n"))
	x.want("one changes", 0, "+n1000")
	for i, o := range x.folder.files[0].objects {
		if same := o.Object == before[i].Object; same != (i != 1000) {
			t.Errorf("object %d: kept as it was: %v", i, same)
		}
	}
}
