package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/lab/manifests"
	"lace-cni.io/lace/bench/lab/testenv"
)

// playDemo runs the demo and returns its exit code, lines and messages. Folders it makes go
// to a directory of the test, which must be empty afterwards.
func playDemo(t *testing.T, flags ...string) (code int, lines []string, errs string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "lace-demo-test-") // a short path: socket names are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	var out, messages strings.Builder
	code = run(t.Context(), append([]string{"demo", "--once", "--plain"}, flags...), &out, &messages)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return code, strings.Split(strings.TrimRight(out.String(), "\n"), "\n"), messages.String()
}

// wantActs checks that every act is there over both families and that all passed.
func wantActs(t *testing.T, code int, lines []string, errs string) {
	t.Helper()
	text := strings.Join(lines, "\n")
	if code != 0 || strings.Contains(text, "FAIL") {
		t.Errorf("exit code %d, %s\n%s", code, errs, text)
	}
	for _, pattern := range []string{
		`ok    both  ready .*ready after \d+ ms`,
		`ok    IPv[46]  one request .*explain agrees`,
		`ok    IPv[46]  even shares .*3000 connections: .*χ² [\d.]+, even below [\d.]+`,
		`ok    IPv[46]  scale 3 → 1 → 0 → 2 .*\d+ refused at 0 endpoints .* 0 failed`,
		`ok    IPv[46]  graceful drain .*: 0 broken; `,
		`ok    IPv[46]  kill the fast path .*kill -9 fastpath: 0 broken flows, gap \d+ ms`,
		`ok    IPv[46]  kill the agent .*kill -9 agent: 0 broken flows, gap \d+ ms`,
	} {
		want := 2
		if strings.Contains(pattern, "both") {
			want = 1
		}
		if n := len(regexp.MustCompile(pattern).FindAllString(text, -1)); n != want {
			t.Errorf("%d lines like %q, want %d, in\n%s", n, pattern, want, text)
		}
	}
}

// The simulated demo passes without any privilege, and every line of it says what it is.
func TestSimulatedDemo(t *testing.T) {
	code, lines, errs := playDemo(t, "--sim")
	wantActs(t, code, lines, errs)
	for _, l := range lines {
		if !strings.Contains(l, "SIMULATED") {
			t.Errorf("a line of the simulation does not say so: %q", l)
		}
	}
	if last := lines[len(lines)-1]; last != "14 passed, 0 failed (SIMULATED)" {
		t.Errorf("last line %q", last)
	}
}

// The real demo passes, and never says that it is simulated.
func TestRealDemo(t *testing.T) {
	testenv.Privileged(t)
	code, lines, errs := playDemo(t, "--require-real")
	wantActs(t, code, lines, errs)
	if text := strings.Join(lines, "\n"); strings.Contains(text, "SIMULATED") || !strings.Contains(text, "real AF_XDP") {
		t.Errorf("what carries the packets is not clear:\n%s", text)
	}
	if last := lines[len(lines)-1]; last != "14 passed, 0 failed" {
		t.Errorf("last line %q", last)
	}
}

// A folder that cannot be used is an error before anything is shown.
func TestDemoWithoutManifests(t *testing.T) {
	empty := t.TempDir()
	for folder, says := range map[string]string{"/nowhere": "--manifests: stat /nowhere: no such file", empty: "no *.yaml file in " + empty} {
		code, lines, errs := playDemo(t, "--sim", "--manifests", folder)
		if code != 1 || strings.Join(lines, "") != "" || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d, output %q, message %q", folder, code, lines, errs)
		}
	}
}

// A folder of one's own is copied and used; one whose Service has no endpoint fails the acts
// honestly.
func TestDemoFailsHonestly(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nodes.yaml", "web.yaml"} {
		b, err := manifests.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, lines, _ := playDemo(t, "--sim", "--manifests", dir)
	if last := lines[len(lines)-1]; code != 1 || !strings.HasSuffix(last, "failed (SIMULATED)") || strings.Contains(last, " 0 failed") {
		t.Errorf("exit code %d, last line %q", code, last)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("the folder was written to: %v", files)
	}
}

// A folder on which nothing could be played is refused at once, with what it lacks.
func TestDemoNamesWhatItsFolderLacks(t *testing.T) {
	dir := t.TempDir()
	node := "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
	if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	code, lines, errs := playDemo(t, "--sim", "--manifests", dir)
	if code != 1 || strings.Join(lines, "") != "" || !strings.Contains(errs, "need Node n2, Service default/web with clusterIPs [10.96.0.10 fd00:10:96::10], and "+dir+" does not have it") {
		t.Errorf("exit code %d, output %q, message %q", code, lines, errs)
	}
}

// Flags that make no sense are a mistake of the command line.
func TestDemoFlags(t *testing.T) {
	for says, args := range map[string][]string{
		"require-real exclude each":   {"--sim", "--require-real"},
		"stay exclude each":           {"--once", "--stay"},
		`--lane "yes": say on or off`: {"--lane", "yes"},
	} {
		code, _, errs := playDemo(t, args...)
		if code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%v: exit code %d, message %q", args, code, errs)
		}
	}
}
