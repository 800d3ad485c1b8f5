package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		args []string
		code int
		says string // on standard error, or standard output
	}{
		{"help names the flags", []string{"--help"}, exitDone, "--flow-slots"},
		{"the version is one line", []string{"--version"}, exitDone, version},
		{"a flag that does not exist", []string{"--verbose"}, exitUsage, "verbose"},
		{"a word that is no flag", []string{"run"}, exitUsage, `"run"`},
		{"a log format that does not exist", []string{"--log-format=xml"}, exitUsage, "xml"},
		{"a log level that does not exist", []string{"--log-level=loud"}, exitUsage, "loud"},
		{"more workers than a trunk has queues", []string{"--workers=1000"}, exitUsage, "workers: 1000"},
		{"a number of workers that makes no sense", []string{"--workers=-1"}, exitUsage, "workers: -1"},
		{"a flow table of nothing", []string{"--flow-slots=2"}, exitUsage, "flow slots: 2"},
		{"no worker", []string{"--workers=0"}, exitUsage, "--workers is 0"},
		{"a flow table without slots", []string{"--flow-slots=0"}, exitUsage, "--flow-slots is 0"},
		{"a trunk that carries nothing", []string{"--trunk-mtu=0"}, exitUsage, "--trunk-mtu is 0"},
		{"a port that may ask nothing", []string{"--punt-rate=0"}, exitUsage, "--punt-rate is 0"},
		{"a port that may ask nothing at once", []string{"--punt-burst=0"}, exitUsage, "--punt-burst is 0"},
		{"a rate that nobody reaches", []string{"--punt-rate=2000000"}, exitUsage, "punt rate: 2000000"},
		{"a state directory without a name", []string{"--state-dir="}, exitUsage, "--state-dir is empty"},
		{"a BPF file system without a name", []string{"--bpffs", ""}, exitUsage, "--bpffs is empty"},
		{"a trunk that XDP cannot carry", []string{"--trunk-mtu=9000"}, exitUsage, "trunk MTU: 9000"},
		{"a state directory that is a file", []string{"--state-dir=" + file}, exitBad, file},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), c.args, &out, &errs); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if said := out.String() + errs.String(); !strings.Contains(said, c.says) {
				t.Errorf("said %q, want something with %q", said, c.says)
			}
		})
	}
}

// TestThePageListsEveryFlagAndNoOther holds docs/reference/lace-fastpath.md to the flags.
func TestThePageListsEveryFlagAndNoOther(t *testing.T) {
	const page = "../../docs/reference/lace-fastpath.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	described := make(map[string]string)
	row := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| *([^|]*?) *\\|")
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		described[m[1]] = strings.Trim(m[2], "`")
	}
	declared := make(map[string]string)
	flags(new(options)).VisitAll(func(f *flag.Flag) { declared[f.Name] = f.DefValue })
	if diff := cmp.Diff(described, declared); diff != "" {
		t.Errorf("flags and their defaults in %s against the code (-page +code):\n%s", page, diff)
	}
}
