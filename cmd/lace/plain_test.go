package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// hostile ends every text with an order to the terminal and a line of its own.
const hostile = "\x1b[2J\u009b31m\r\nforged"

// spoil makes every text of an answer hostile but moments, which are none when spoilt.
func spoil(v any) any {
	switch v := v.(type) {
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return v
		}
		return v + hostile
	case []any:
		for i := range v {
			v[i] = spoil(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = spoil(v[k])
		}
	}
	return v
}

// spoilt is what an agent says whose every text is hostile.
func spoilt(t *testing.T, said map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	for path, answer := range said {
		b, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		out[path] = spoil(v)
	}
	return out
}

// Whatever objects, files and devices are called, a table has the lines that it has with
// harmless names, and nothing that a terminal obeys is written, on either output.
func TestNamesReachNoTerminal(t *testing.T) {
	said := map[string]any{
		api.PathStatus: api.Status{Node: "n1", Simulated: true, Waiting: "for the source", Fastpath: api.Fastpath{Message: "gone", Sockets: "kernel too old"},
			Repairs: map[string]uint64{"link": 2}},
	}
	for path, answer := range answers {
		said[path] = answer
	}
	said[api.PathProblems] = api.List[api.Problem]{Items: []api.Problem{{Kind: "File", Object: "a.yaml", Field: "f", Reason: "R", Message: "m"}, {Kind: "Service", Object: "default/web", Reason: "R", Message: "m", Place: api.Place{File: "a.yaml", Document: 1, Line: 1, Item: "items[0]"}}}}
	said[api.PathDrops] = api.List[api.Drop]{Items: []api.Drop{{Reason: "no-room", BlackHoles: []api.BlackHole{{In: "veth-a", Device: "eth0"}}}}}
	bad := spoilt(t, said)
	for _, args := range [][]string{
		{"get", "services"}, {"get", "services", "-o", "wide"}, {"get", "backends", "-o", "wide"}, {"get", "flows", "-o", "wide"},
		{"get", "drops", "-o", "wide"}, {"get", "lane", "-o", "wide"}, {"get", "ports", "-o", "wide"}, {"get", "problems"}, {"get", "status"}, {"check"},
		{"explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp"},
		{"explain", "--from", "shopper", "--to", "10.96.0.10:80/tcp", "-o", "wide"},
	} {
		code, out, errs := told(t, said, args...)
		badCode, badOut, badErrs := told(t, bad, args...)
		if code != badCode || strings.Count(out, "\n") != strings.Count(badOut, "\n") || strings.Count(errs, "\n") != strings.Count(badErrs, "\n") {
			t.Errorf("%v: exit code %d and output\n%s%s\nwith harmless names %d and\n%s%s", args, badCode, badOut, badErrs, code, out, errs)
		}
		wantPlain(t, fmt.Sprint(args), badOut+badErrs)
		if !strings.Contains(badOut+badErrs, `\x1b[2J\u009b31m\r\nforged`) {
			t.Errorf("%v: the names are not shown:\n%s", args, badOut)
		}
	}
}

func wantPlain(t *testing.T, what, text string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("%s: a terminal would obey\n%q", what, text)
	}
}

// Nor do the names of this machine's devices, and what the kernel says of them.
func TestFindingsReachNoTerminal(t *testing.T) {
	var out strings.Builder
	if err := writeFindings(&out, screen.Table, []preflight.Finding{{Verdict: preflight.Warn, Check: "device" + hostile, Found: "p" + hostile, Do: "rename p" + hostile}}, "the end"); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, "check", out.String())
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d lines, want one for the finding, one for what to do, an empty one and the outcome:\n%s", n, out.String())
	}
}

// Programs get names as they are.
func TestProgramsGetNamesAsTheyAre(t *testing.T) {
	const name = "web\x1b[2J"
	said := map[string]any{api.PathBackends: api.List[api.Backend]{Items: []api.Backend{{Pod: name}}}}
	code, out, errs := told(t, said, "get", "backends", "-o", "json")
	var list api.List[api.Backend]
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list.Items) != 1 || list.Items[0].Pod != name {
		t.Errorf("exit code %d, error %v, output\n%s%s", code, err, out, errs)
	}
}
