package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lace-cni.io/lace/bench/lab/testenv"
	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/plan"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/rig"
)

// programVariable makes the test's executable the program itself.
const programVariable = "LACE_BENCH_PROGRAM"

// startProgram runs the program in a process of its own and hands out what it says about
// its progress.
func startProgram(t *testing.T, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), programVariable+"=1")
	r, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, bufio.NewScanner(r)
}

// TestASignalEndsIt: at any stage of a run, within two seconds; the test allows a busy
// machine some more.
func TestASignalEndsIt(t *testing.T) {
	testenv.Privileged(t)
	for _, c := range []struct {
		sentence string
		args     []string
		after    string // what it says before it gets the signal
	}{
		{"while it builds", nil, "building lace with 1 services"},
		{"between measurements", []string{"--loads", "rtt", "--modes", "direct", "--for", "1ms", "--rounds", "1000000"}, "round 9 of"},
		{"while frames are made in the kernel", []string{"--loads", "floor", "--modes", "direct", "--for", "50s"}, "measuring floor"},
		{"while a worker is given frames", []string{"--loads", "udp-frames", "--modes", "lace-off", "--for", "50s"}, "measuring udp-frames"},
		{"while datagrams are sent", []string{"--loads", "udp-sockets", "--modes", "direct", "--for", "50s"}, "measuring udp-sockets"},
		{"while streams flow", []string{"--loads", "tcp-8", "--modes", "direct", "--for", "50s"}, "measuring tcp-8"},
		{"while connections are made", []string{"--loads", "connect", "--modes", "direct", "--for", "50s"}, "measuring connect"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			cmd, lines := startProgram(t, append([]string{"--kind", "smoke", "--paths", "node"}, c.args...)...)
			for lines.Scan() && !strings.Contains(lines.Text(), c.after) {
			}
			if lines.Err() != nil || !strings.Contains(lines.Text(), c.after) {
				t.Fatalf("it never said %q: %v", c.after, lines.Err())
			}
			start := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			rest := new(bytes.Buffer)
			for lines.Scan() {
				rest.WriteString(lines.Text() + "\n")
			}
			err := cmd.Wait()
			if took := time.Since(start); took > 6*time.Second {
				t.Errorf("it ended after %s:\n%s", took, rest)
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != exitBad {
				t.Errorf("%v, want exit code %d:\n%s", err, exitBad, rest)
			}
		})
	}
}

// TestASignalLeavesTheRecordThatIsThere: what was measured is put beside it, and the last
// line says where.
func TestASignalLeavesTheRecordThatIsThere(t *testing.T) {
	testenv.Privileged(t)
	path := filepath.Join(t.TempDir(), "run.json")
	whole := record.Run{Layout: record.Layout, Kind: record.Bench, Rounds: 7}
	if err := whole.Write(path); err != nil {
		t.Fatal(err)
	}
	cmd, lines := startProgram(t, "--kind", "smoke", "--paths", "node", "--loads", "rtt", "--modes", "direct", "--for", "1ms", "--rounds", "1000000", "--json", path)
	for lines.Scan() && !strings.Contains(lines.Text(), "round 9 of") {
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitBad || !strings.Contains(last, "of 1000000 rounds: what was measured is in "+path+".partial") {
		t.Errorf("%v, its last line is %q", err, last)
	}
	if r, err := record.Read(path); err != nil || r.Rounds != 7 {
		t.Errorf("the record: %+v, %v, want it as it was", r, err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--from", path + ".partial"}, &out, &errs); code != exitDone || !strings.Contains(out.String(), "note: not a complete run: stopped after") {
		t.Errorf("the part is reported with exit code %d, errors %q, output:\n%s", code, &errs, &out)
	}
}

// TestAMeasurementThatHangs has failed with a reason, and the run goes on without the rig
// that it may still be using; one that is only slow keeps its rig.
func TestAMeasurementThatHangs(t *testing.T) {
	place, other := plan.Place{Mode: "nft", Services: 1}, plan.Place{Mode: "lace", Services: 1}
	d := &driver{plan: &plan.Plan{}, slack: 10 * time.Millisecond, say: io.Discard,
		run: new(record.Run), rigs: map[plan.Place]*rig.Rig{place: nil, other: nil}}

	_, err := d.within(t.Context(), other, func(ctx context.Context) (measure.Values, error) {
		<-ctx.Done()
		return nil, errors.New("3 of 5 packets made")
	})
	if !errors.Is(err, errOverdue) || !strings.Contains(err.Error(), "3 of 5") {
		t.Errorf("a slow one: %v", err)
	}
	hanging := make(chan struct{})
	defer close(hanging)
	_, err = d.within(t.Context(), place, func(context.Context) (measure.Values, error) {
		<-hanging
		return nil, nil
	})
	if !errors.Is(err, errOverdue) || !strings.Contains(err.Error(), "nothing more is measured of nft") {
		t.Errorf("one that hangs: %v", err)
	}
	if _, ok := d.rigs[place]; ok || len(d.rigs) != 1 {
		t.Errorf("rigs left: %v", d.rigs)
	}
	v, err := d.within(t.Context(), other, func(context.Context) (measure.Values, error) { return measure.Values{"p50": 1}, nil })
	if err != nil || v["p50"] != 1 {
		t.Errorf("the next one: %v, %v", v, err)
	}
}

// TestAFailureIsMeasuredAgain, once, and not where something still hangs.
func TestAFailureIsMeasuredAgain(t *testing.T) {
	place := plan.Place{Mode: "nft", Services: 1}
	for _, c := range []struct {
		sentence string
		failures int
		tries    int
		good     bool
	}{
		{"what succeeds is measured once", 0, 1, true},
		{"what fails once has succeeded", 1, 2, true},
		{"what fails twice has failed", 5, 2, false},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			d := &driver{plan: &plan.Plan{}, slack: time.Minute, say: io.Discard,
				run: new(record.Run), rigs: map[plan.Place]*rig.Rig{place: new(rig.Rig)}}
			tries := 0
			_, err := d.attempt(t.Context(), place, func(context.Context) (measure.Values, error) {
				if tries++; tries <= c.failures {
					return nil, errors.New("no answer")
				}
				return measure.Values{}, nil
			})
			if tries != c.tries || (err == nil) != c.good || len(d.run.Notes) != c.tries-1 {
				t.Errorf("%d tries, error %v, notes %q", tries, err, d.run.Notes)
			}
		})
	}
}
