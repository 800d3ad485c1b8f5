package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/fastpath/table"
)

func TestCommandLines(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "state")
	cases := []struct {
		name string
		args []string
		code int
		says string // on standard error, or standard output
	}{
		{"help names the flags", []string{"--help"}, exitDone, "--service-cidrs"},
		{"the version is one line", []string{"--version"}, exitDone, version},
		{"a flag that does not exist", []string{"--verbose"}, exitUsage, "verbose"},
		{"a word that is no flag", []string{"--source-dir=x", "run"}, exitUsage, `"run"`},
		{"no source", nil, exitUsage, "--source-dir"},
		{"two sources", []string{"--source-dir=x", "--apiserver=192.0.2.1"}, exitUsage, "exclude each other"},
		{"a cluster without credentials", []string{"--apiserver=192.0.2.1", "--node-name=n"}, exitBad, "--kubeconfig"},
		{"a kubeconfig that is not there", []string{"--kubeconfig=" + absent, "--node-name=n"}, exitBad, absent},
		{"a kubeconfig that has no end", []string{"--kubeconfig=/dev/zero", "--node-name=n"}, exitBad, "--kubeconfig /dev/zero: it is no regular file"},
		{"a kubeconfig that is a folder", []string{"--kubeconfig=/", "--node-name=n"}, exitBad, "--kubeconfig /: it is no regular file"},
		{"an API server by another scheme", []string{"--apiserver=ftp://x"}, exitUsage, `--apiserver: "ftp://x"`},
		{"an API server's address that is cut off", []string{"--apiserver=[::1"}, exitUsage, `--apiserver: "[::1"`},
		{"an API server's port out of range", []string{"--apiserver=1.2.3.4:99999"}, exitUsage, `--apiserver: "1.2.3.4:99999": port 99999`},
		{"an API server's port 0", []string{"--apiserver=1.2.3.4:0"}, exitUsage, "port 0"},
		{"an API server with a password, which is not repeated", []string{"--apiserver=https://u:p@h/path"}, exitUsage, `--apiserver: "https://xxxxx@h/path" has more`},
		{"a wrong API server is told before a wrong kubeconfig", []string{"--apiserver=ftp://x", "--kubeconfig=/dev/zero"}, exitUsage, "--apiserver"},
		{"a port to listen at that is out of range", []string{"--source-dir=x", "--healthz-bind-address=:99999"}, exitUsage, `--healthz-bind-address ":99999": port "99999"`},
		{"an address to listen at without a port", []string{"--source-dir=x", "--metrics-bind-address=127.0.0.1"}, exitUsage, `--metrics-bind-address "127.0.0.1": missing port`},
		{"a node name that no Node can have", []string{"--source-dir=x", "--node-name=../../x"}, exitUsage, `--node-name "../../x"`},
		{"a range that is no prefix", []string{"--service-cidrs=10.96.0.0"}, exitUsage, "10.96.0.0/16"},
		{"a range with bits behind its length", []string{"--service-cidrs=10.96.0.1/16"}, exitUsage, "do you mean 10.96.0.0/16"},
		{"ranges that overlap", []string{"--source-dir=x", "--node-name=n", "--state-dir=" + absent, "--service-cidrs=10.0.0.0/8, 10.96.0.0/16"}, exitBad, "overlap"},
		{"a source that is a file", []string{"--source-dir=main_test.go", "--node-name=n"}, exitUsage, "--source-dir main_test.go: it is no folder"},
		{"a source that has no end", []string{"--source-dir=/dev/zero", "--node-name=n"}, exitUsage, "--source-dir /dev/zero: it is no folder"},
		{"ranges that are commas", []string{"--source-dir=x", "--service-cidrs=,,"}, exitUsage, "nothing stands between the commas"},
		{"addresses for node ports that are commas", []string{"--source-dir=x", "--nodeport-addresses=, "}, exitUsage, "nothing stands between the commas"},
		{"API servers that are commas", []string{"--apiserver=,"}, exitUsage, "nothing stands between the commas"},
		{"a kubeconfig that the kernel makes up", []string{"--kubeconfig=/proc/self/status", "--node-name=n"}, exitBad, "--kubeconfig /proc/self/status: it is a file of the kernel's"},
		{"a lane that is neither on nor off", []string{"--source-dir=x", "--lane=yes"}, exitUsage, "--lane"},
		{"a log format that does not exist", []string{"--source-dir=x", "--log-format=xml"}, exitUsage, "xml"},
		{"a log level that does not exist", []string{"--log-level=loud"}, exitUsage, "loud"},
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
			if _, err := os.Stat(absent); err == nil {
				t.Errorf("%s was made although nothing was started", absent)
			}
		})
	}
}

func TestCleanupSaysWhatItRemoved(t *testing.T) {
	for _, c := range []struct {
		removed []string
		err     error
		want    string
	}{
		{[]string{"/run/lace", "trunk: lace0"}, nil, "removed /run/lace\nremoved trunk: lace0\n"},
		{nil, nil, "nothing of Lace was left here\n"},
		{[]string{"trunk: lace0"}, errors.New("busy"), "removed trunk: lace0\n"},
		{nil, errors.New("busy"), ""},
	} {
		var out bytes.Buffer
		if err := tell(&out, c.removed, c.err); err != c.err || out.String() != c.want {
			t.Errorf("%q, %v: said %q, %v; want %q and the error", c.removed, c.err, out.String(), err, c.want)
		}
	}
}

func TestLaneFlag(t *testing.T) {
	for word, want := range map[string]uint8{"on": 1, "off": 0} {
		o, err := parse([]string{"--source-dir=x", "--node-name=n", "--lane=" + word}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.config(io.Discard).Settings.Lane; got != want {
			t.Errorf("--lane %s publishes %d, want %d", word, got, want)
		}
	}
	o, err := parse([]string{"--source-dir=x", "--node-name=n"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table.DefaultSettings(), o.config(io.Discard).Settings); diff != "" {
		t.Errorf("without flags (-defaults +published):\n%s", diff)
	}
}

// TestThePageListsEveryFlagAndNoOther holds docs/reference/lace-agent.md to the flags.
func TestThePageListsEveryFlagAndNoOther(t *testing.T) {
	const page = "../../docs/reference/lace-agent.md"
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
