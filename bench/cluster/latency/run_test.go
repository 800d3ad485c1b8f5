//go:build cluster

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/suite/record"
)

// TestARun measures every part with a few Services: does it run? Its times mean nothing.
func TestARun(t *testing.T) {
	cluster.RequiredKubeProxy(t)
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "lace-cni.io/lace/cmd/lace-agent", "lace-cni.io/lace/cmd/lace-fastpath")
	if says, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, says)
	}
	path := filepath.Join(bin, "run.json")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{
		"--agent", filepath.Join(bin, "lace-agent"), "--fastpath", filepath.Join(bin, "lace-fastpath"), "--json", path,
		"--services", "20", "--most", "20", "--changes", "2", "--starts", "1", "--pause", "100ms", "--rest", "1s",
	}, &out, &errs)
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	r, err := record.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	// Two changes and their summary, idle and loaded, a start and the memory of both sides, and
	// Lace's rest.
	if want := 2*2*3 + 2*2 + 1; len(r.Samples) != want {
		t.Errorf("%d samples, want %d: %+v", len(r.Samples), want, r.Samples)
	}
	for _, g := range goals(20) {
		if v := g.Judge(r); v.Value.Rounds == 0 {
			t.Errorf("%s was not measured", g.Name)
		} else if g.Name == "writes-at-rest" && !v.Met {
			t.Errorf("the agent writes at rest: %s", v)
		}
	}
	if v := median(r, &options{services: 20}, "lace", loadMemory, "lace-fastpath-maps"); !(v > 0) {
		t.Errorf("BPF maps of %v MiB", v)
	}
}
