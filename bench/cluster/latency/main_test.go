package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/cluster"
	"lace-cni.io/lace/bench/suite/record"
)

func TestMain(m *testing.M) {
	cluster.Main()
	os.Exit(m.Run())
}

func TestNonsenseOnTheCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--services", "0"}, {"--services", "50000"}, {"--endpoints", "0"}, {"--endpoints", "20", "--most", "10"}, {"--most", "101"},
		{"--changes", "0"}, {"--starts", "0"}, {"--pause", "-1s"}, {"--rest", "0s"}, {"--limit", "0s"}, {"--min-sync-period", "-1s"},
		{"--parts", "warm"}, {"stray"}, {"--bogus"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != exitUsage || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, output %q, errors %q", args, code, &out, &errs)
		}
	}
}

// TestWhatCannotEndWellIsNotBegun: a record that cannot be written, a program that is not
// there.
func TestWhatCannotEndWellIsNotBegun(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none", "run.json")
	for _, args := range [][]string{
		{"--agent", "/bin/true", "--fastpath", "/bin/true", "--json", none}, {"--agent", none}, {"--agent", "/bin/true", "--fastpath", none},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), none) || strings.Contains(errs.String(), "control plane") {
			t.Errorf("%v: exit code %d, errors %q", args, code, &errs)
		}
	}
}

// TestThe99thOfFewIsTheHighest: no value is left out of a percentile by rounding down.
func TestThe99thOfFewIsTheHighest(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{5, 1, 9, 2}, 9}, {hundred[1:], 99}, {hundred, 99}} {
		if got := percentile(c.v, 99); got != c.want {
			t.Errorf("of %d values: %v, want %v", len(c.v), got, c.want)
		}
	}
}

// TestMappedMapsAreNotOwnMemory: of the mappings of a process those of BPF maps count, and no
// other field of theirs.
func TestMappedMapsAreNotOwnMemory(t *testing.T) {
	smaps := `00400000-00800000 r-xp 00000000 fd:00 12 /bin/lace-fastpath
Size:               4096 kB
Rss:                4000 kB
7f0000000000-7f0000100000 rw-s 00000000 00:0e 1 anon_inode:bpf-map
Size:               1024 kB
Rss:                 512 kB
Pss:                 256 kB
7f0000200000-7f0000300000 rw-s 00000000 00:0e 1 anon_inode:bpf-map
Rss:                   8 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
Rss:                  16 kB
`
	if got := mappedMaps(smaps); got != 520 {
		t.Errorf("%v KiB, want 520", got)
	}
}

// TestGoalsAreJudgedByTheRun: a figure, a part of kube-proxy's, and one of which there is to be
// none; what was not measured is missed.
func TestGoalsAreJudgedByTheRun(t *testing.T) {
	b := newBench(&options{services: 7, changes: 3, starts: 1}, &bytes.Buffer{})
	for _, s := range []struct {
		side string
		p99  float64
	}{{"lace", 50}, {"kube-proxy", 100}} {
		b.sample(s.side, loadIdle, 0, map[string]float64{"p99": s.p99})
	}
	b.sample("lace", loadRest, 0, map[string]float64{"writes": 0})
	var out bytes.Buffer
	if err := report(&out, b.run, b.options); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"goal change-idle-p99-ms 50 <=250 met", "goal change-idle-p99-of-kube-proxy 0.5 <=0.25 missed",
		"goal change-loaded-p99-ms unmeasured <=250 missed", "goal writes-at-rest 0 <=0 met",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
	b.run.Samples = b.run.Samples[:2]
	b.sample("lace", loadRest, 0, map[string]float64{"writes": 2})
	for _, g := range goals(7) {
		if v := g.Judge(b.run); v.Goal.Name == "writes-at-rest" && v.Met {
			t.Error("two writes at rest meet the goal of none")
		}
	}
	if b.run.Layout != record.Layout {
		t.Errorf("layout %d", b.run.Layout)
	}
}
