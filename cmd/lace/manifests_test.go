package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/docs/commandline"
)

var update = flag.Bool("update", false, "write what the commands say into testdata")

// TestManifests runs the command line that each of testdata/manifests/*.txtar begins with, on
// a folder of the other files, and wants what the file "says" on the output and the exit code.
func TestManifests(t *testing.T) {
	paths, err := filepath.Glob("testdata/manifests/*.txtar")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d folders are there, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			line := regexp.MustCompile(`(?m)^lace .*$`).FindString(string(a.Comment))
			words, ok := commandline.Split(line, "lace")
			if !ok {
				t.Fatalf("no command line of lace in\n%s", a.Comment)
			}
			folder, want := unpack(t, a)
			var out, errs strings.Builder
			code := run(t.Context(), append(words, "--source-dir", folder), &out, &errs)
			got := map[string]string{"says": out.String(), "exit": fmt.Sprintln(code)}
			if *update {
				for i, f := range a.Files {
					if text, ok := got[f.Name]; ok {
						a.Files[i].Data = []byte(text)
					}
				}
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" || errs.Len() > 0 {
				t.Errorf("message %q, output and exit code (-want +got):\n%s", errs.String(), d)
			}
		})
	}
}

// unpack makes a folder of an archive, but for what it expects.
func unpack(t *testing.T, a *txtar.Archive) (folder string, want map[string]string) {
	t.Helper()
	folder, want = t.TempDir(), map[string]string{}
	for _, f := range a.Files {
		if f.Name == "says" || f.Name == "exit" {
			want[f.Name] = string(f.Data)
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, want
}

// TestManifestsOfTheHowTo: the folder that people are told to write passes the check that they
// are told to do.
func TestManifestsOfTheHowTo(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/run-on-a-node.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?s)demo\.yaml <<'END'\n(.*?)\nEND\n`).FindSubmatch(page)
	line := regexp.MustCompile(`(?m)^lace (check --source-dir .*)$`).FindSubmatch(page)
	if text == nil || line == nil {
		t.Fatal("the page has no demo.yaml, or no check of it")
	}
	folder, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "demo.yaml", Data: text[1]}}})
	args := strings.Fields(strings.ReplaceAll(string(line[1]), "/etc/lace/manifests", folder))
	var out, errs strings.Builder
	code := run(t.Context(), args, &out, &errs)
	if want := "1 Service, 2 EndpointSlices, 1 Node, 0 ServiceCIDRs, for node worker-1: no Problems."; code != 0 || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d, message %q, output\n%swant %q", code, errs.String(), out.String(), want)
	}
}

// TestManifestsThatCannotBeChecked: a folder that is not there and flags that make no sense are
// no Problems of a folder.
func TestManifestsThatCannotBeChecked(t *testing.T) {
	empty := t.TempDir()
	absent := filepath.Join(empty, "absent")
	parent, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "x.yml.bak", Data: []byte("kind: [\n")}, {Name: ".x.yaml", Data: []byte("kind: [\n")}}})
	if err := os.Mkdir(filepath.Join(parent, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a folder that is not there", []string{"--source-dir", absent}, 1, absent + ": no such file or directory"},
		{"a folder that is a file", []string{"--source-dir", "main.go"}, 1, "main.go: it is no folder"},
		{"a folder of folders", []string{"--source-dir", parent}, 1, "the folder " + parent + " holds no *.yaml, *.yml or *.json: hidden files, other names and sub-folders are not looked at; name the folder that holds them"},
		{"the same for programs", []string{"--source-dir", parent, "-o", "json"}, 1, "holds no *.yaml"},
		{"a folder that is not there for programs", []string{"--source-dir", absent, "-o", "json"}, 1, "no such file"},
		{"no name of a folder", []string{"--source-dir", ""}, 2, "--source-dir is empty"},
		{"ranges without a folder", []string{"--service-cidrs", "10.96.0.0/16"}, 2, "name it with --source-dir"},
		{"a node without a folder", []string{"--node-name", "n1"}, 2, "name it with --source-dir"},
		{"a name that no Node can have", []string{"--source-dir", empty, "--node-name", "../x"}, 2, `--node-name "../x"`},
		{"a range that is no prefix", []string{"--source-dir", empty, "--service-cidrs", "10.96.0.0"}, 2, "10.96.0.0/16"},
		{"ranges that overlap", []string{"--source-dir", empty, "--service-cidrs", "10.96.0.0/16,10.0.0.0/8"}, 2, "overlap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs strings.Builder
			code := run(t.Context(), append([]string{"check"}, c.args...), &out, &errs)
			if code != c.code || !strings.Contains(errs.String(), c.says) || out.Len() > 0 {
				t.Errorf("exit code %d, message %q, output %q; want %d and a message with %q", code, errs.String(), out.String(), c.code, c.says)
			}
		})
	}
}

// TestHundredsOfProblemsOfAFolder are all said, each in one line, whatever its file is called.
func TestHundredsOfProblemsOfAFolder(t *testing.T) {
	const n = 300
	folder := t.TempDir()
	for i := range n {
		text := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: s%d}\nspec: {clusterIP: \"10.96.0.x\\e[2J\", ports: [{port: 80}]}\n", i)
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d\x1b[2J.yaml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	code := run(t.Context(), []string{"check", "--source-dir", folder, "--service-cidrs", "10.96.0.0/16", "--node-name", "n1"}, &out, &errs)
	wantPlain(t, "check", out.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code != 1 || errs.Len() > 0 || len(lines) != n+3 {
		t.Errorf("exit code %d, message %q, %d lines; want one for each Problem, that of the Node that is missing, an empty one and the outcome", code, errs.String(), len(lines))
	}
	if got, want := lines[len(lines)-1], "300 Services, 0 EndpointSlices, 0 Nodes, 0 ServiceCIDRs, for node n1: 301 Problems."; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
	if got, want := lines[1], `fail  000\x1b[2J.yaml document 1 line 1  Service default/s0 spec.clusterIP`; !strings.HasPrefix(got, want) {
		t.Errorf("a line is %q, want it to begin with %q", got, want)
	}
}

// A column is as wide as what is shown in it.
func TestFindingsAreAligned(t *testing.T) {
	var out strings.Builder
	findings := []preflight.Finding{{Verdict: preflight.Warn, Check: "ä\x1b", Found: "x"}, {Verdict: preflight.OK, Check: "plain", Found: "y"}}
	if err := writeFindings(&out, screen.Table, findings, "end"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "warn  ä\\x1b  x\nok    plain  y\n\nend\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
