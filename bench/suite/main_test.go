package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/suite/plan"
	"lace-cni.io/lace/bench/suite/record"
)

func TestMain(m *testing.M) {
	lab.Main()
	if os.Getenv(programVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestNonsenseOnTheCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--kind", "slow"}, {"--modes", "ipvs"}, {"--loads", "icmp"}, {"--paths", "mars"}, {"--services", "none"}, {"--services", "0"},
		{"--rounds", "-1"}, {"--insert", "README.md"}, {"stray"}, {"--bogus"},
		{"--from", ""}, {"--json", ""}, {"--from", "../recorded/bench.json", "--insert", ""},
		{"--from", "../recorded/bench.json", "--json", "run.json"}, {"--from", "../recorded/bench.json", "--kind", "bench"},
		{"--for", "1ns"}, {"--kind", "smoke", "--json", "/dev/null"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != exitUsage || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, output %q, errors %q", args, code, &out, &errs)
		}
	}
}

// TestAWrongLoadIsToldTheRightOnes: in the message, and in the help before.
func TestAWrongLoadIsToldTheRightOnes(t *testing.T) {
	for _, args := range [][]string{{"--loads", "foo"}, {"--help"}} {
		var out, errs bytes.Buffer
		run(t.Context(), args, &out, &errs)
		if said := out.String() + errs.String(); !strings.Contains(said, "udp-frames, udp-sockets") || !strings.Contains(said, "flood-udp-300k") {
			t.Errorf("%v: the loads are not named:\n%s", args, said)
		}
	}
}

func TestFlagsNarrowThePlan(t *testing.T) {
	o, err := parse([]string{"--kind", "smoke", "--modes", "nft,direct", "--loads", "rtt,floor", "--rounds", "3", "--for", "10ms", "--budget", "1m"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	steps, _, err := p.Steps()
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.Place{{Mode: "nft", Services: 1}, {Mode: "direct", Services: 1}}
	if got := plan.Rigs(steps); !slices.Equal(got, want) || len(steps) != 2 || p.Rounds != 3 || p.Times.For.Milliseconds() != 10 || p.Budget.Minutes() != 1 {
		t.Errorf("rigs %v, %d steps, plan %+v", got, len(steps), p)
	}
}

// TestARecordedRunIsReportedAgain: table and goals come from the file alone.
func TestARecordedRunIsReportedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	m := record.Measurement{Load: "tcp-1", Path: "node", Services: 1}
	r := record.Run{Layout: record.Layout, Kind: record.Bench, Rounds: 1, Samples: []record.Sample{
		{Mode: "nft", Measurement: m, Values: map[string]float64{"gbps": 10}},
		{Mode: "lace", Measurement: m, Values: map[string]float64{"gbps": 12}},
	}}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--from", path}, &out, &errs); code != exitDone || !strings.Contains(out.String(), "goal tcp-1 1.2 >=1 met") {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, &errs, &out)
	}
	out.Reset()
	if code := run(t.Context(), []string{"--from", path, "--markdown"}, &out, &errs); code != exitDone || strings.Contains(out.String(), "goal ") || !strings.Contains(out.String(), "| tcp-1 | node | 1 | lace |") {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, &errs, &out)
	}
	if code := run(t.Context(), []string{"--from", path + ".none"}, &out, &errs); code != exitBad {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}

// TestARun measures two modes for two short rounds, records them and says that no goal is
// about them.
func TestARun(t *testing.T) {
	testenv.Privileged(t)
	path := filepath.Join(t.TempDir(), "run.json")
	args := []string{"--kind", "smoke", "--modes", "lace-off,direct", "--loads", "rtt,udp-new,floor", "--paths", "node", "--rounds", "2", "--for", "20ms", "--json", path}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if !strings.HasSuffix(out.String(), "\n23 of 23 goals are about what was not asked for, and are left out\n") {
		t.Errorf("the output ends with no word about goals:\n%s", &out)
	}
	r, err := record.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rounds != 2 || len(r.Samples) != 2*5 || r.Generator["frames-ns"] <= 0 || len(r.Modes) != 2 || r.Seconds <= 0 {
		t.Errorf("%d rounds, %d samples, generator %v, modes %v", r.Rounds, len(r.Samples), r.Generator, r.Modes)
	}
}

// TestARecordThatCannotBeWrittenIsRefused: before anything is measured.
func TestARecordThatCannotBeWrittenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "run.json")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--kind", "smoke", "--modes", "direct", "--loads", "rtt", "--json", path}, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), path) || strings.Contains(errs.String(), "building") {
		t.Errorf("exit code %d, errors %q", code, &errs)
	}
}

// TestARunThatIsNotRecordedIsShown: a disk that became full costs the record and no figure.
func TestARunThatIsNotRecordedIsShown(t *testing.T) {
	testenv.Privileged(t)
	var out, errs bytes.Buffer
	path := filepath.Join(fullDisk(t), "run.json")
	code := run(t.Context(), []string{"--kind", "smoke", "--modes", "direct", "--loads", "floor", "--paths", "node", "--rounds", "1", "--for", "20ms", "--json", path}, &out, &errs)
	if code != exitBad || !strings.Contains(out.String(), "floor") || !strings.Contains(errs.String(), path) || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, &errs, &out)
	}
}

// fullDisk takes names of files and no contents.
func fullDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "all-there-is"), make([]byte, 4<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWhatIsNoRunOfTheBenchIsRefused: that of another program would miss every goal.
func TestWhatIsNoRunOfTheBenchIsRefused(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--from", "../recorded/latency.json"}, &out, &errs); code != exitBad || out.Len() > 0 || !strings.Contains(errs.String(), `--from: ../recorded/latency.json records a run of kind "latency"`) {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, &errs, &out)
	}
}

// TestARecordObeysNoTerminal: whoever wrote it cannot clear the screen of its reader.
func TestARecordObeysNoTerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	m := record.Measurement{Load: "tcp-1", Path: "node", Services: 1}
	r := record.Run{Layout: record.Layout, Kind: record.Bench, Rounds: 1, Notes: []string{"two\nlines \x9b2J"},
		Modes:   []record.Mode{{Name: "la\x1b[2Jce"}},
		Samples: []record.Sample{{Mode: "la\x1b[2Jce", Measurement: m, Values: map[string]float64{"gbps": 10}}}}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--from", path}, {"--from", path, "--markdown"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != exitDone || !strings.Contains(out.String(), `la\x1b[2Jce`) || strings.ContainsAny(out.String(), "\x1b\u009b") {
			t.Errorf("%v: exit code %d, errors %q, output:\n%q", args, code, &errs, &out)
		}
	}
}

// TestNoEndlessFileIsReported: neither as a run nor as a document.
func TestNoEndlessFileIsReported(t *testing.T) {
	for _, args := range [][]string{{"--from", "/dev/zero"}, {"--from", "../recorded/bench.json", "--insert", "/dev/zero"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != exitBad || !strings.Contains(errs.String(), "/dev/zero: it is no regular file") {
			t.Errorf("%v: exit code %d, errors %q", args, code, &errs)
		}
	}
}

// TestInterrupted: a run that is stopped closes what it built and says that it has nothing.
func TestInterrupted(t *testing.T) {
	testenv.Privileged(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	path := filepath.Join(t.TempDir(), "run.json")
	if code := run(ctx, []string{"--kind", "smoke", "--modes", "direct", "--json", path}, &out, &errs); code != exitBad || !strings.Contains(errs.String(), "stopped before anything was measured: nothing is recorded, "+path) {
		t.Errorf("exit code %d, errors %q", code, &errs)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("a record was left: %v", err)
	}
}
