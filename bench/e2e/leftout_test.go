package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leftOut are tests that are not run with the API server as their source, and why.
type leftOut struct {
	why   string
	tests []string // names with those of their parts, as in "Test/part"; * is anything
}

var otherSource = []leftOut{
	{"an API server has no files", []string{"TestBehaviour/*/a broken file changes nothing and is reported"}},
	{"how nodes connect their pods, and how packets are delivered, is nothing that a source tells; the other settings are run", []string{
		"TestBehaviour/*, routed pods, no reverse-path filter, one worker",
		"TestBehaviour/*, bridged pods, strict reverse-path filter, one worker",
		"TestBehaviour/lane on, bridged pods, loose reverse-path filter, two workers",
		"TestBehaviour/lane off, routed pods, strict reverse-path filter, two workers",
		"TestBehaviourInStack/*, routed pods, no reverse-path filter, one worker",
		"TestBehaviourInStack/*, bridged pods, strict reverse-path filter, one worker",
		"TestBehaviourInStack/*, bridged pods, loose reverse-path filter, two workers",
		"TestFrontends/lane on, direct", "TestFrontends/lane off, stack", "TestLaneInStack",
	}},
	{"it changes links, routes and rules of hosts, of which no source tells", []string{
		"TestBlackHole", "TestCutting", "TestDevicesChangeUnderTheFastPath", "TestForeignRoutes", "TestForeignRules", "TestJumboPods",
		"TestPathMTU", "TestPathMTUAtEveryAddress", "TestPathMTUInStack", "TestPodChurn",
	}},
	{"it takes away from the fast path what the agent does not read from a source", []string{
		"TestFaultsUnderLoad", "TestKillAtRandomMoments", "TestProgramForAnswersDetached", "TestRestartLoop", "TestStandStill",
	}},
	{"it floods, while nothing that is declared changes", []string{"TestFlood"}},
}

// leaveOut lets the tests of a list not be run, and says so.
func leaveOut(list []leftOut) {
	skip := flag.Lookup("test.skip").Value
	if err := skip.Set(skipping(skip.String(), list)); err != nil {
		panic(err) // of a list that is compiled in
	}
	for _, l := range list {
		for _, name := range l.tests {
			fmt.Printf("left out: %s: %s\n", name, l.why)
		}
	}
}

// skipping adds a list to what -skip was given. Of alternatives the first that matches a
// test decides, also when it matches it only as the parent of what it names, so that the
// shorter ones come first.
func skipping(given string, list []leftOut) string {
	var all []string
	if given != "" {
		all = append(all, given)
	}
	for _, l := range list {
		for _, name := range l.tests {
			all = append(all, pattern(name))
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return strings.Join(all, "|")
}

// pattern is what -skip takes for a name, in the way in which testing rewrites names.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		part = regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_"))
		parts[i] = "^" + strings.ReplaceAll(part, `\*`, ".*") + "$"
	}
	return strings.Join(parts, "/")
}

// What is left out is there: each name is one of this package's tests, and each part of it a
// sentence of theirs.
func TestLeftOutIsThere(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, f := range files {
		if f == "leftout_test.go" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(b)
	}
	for _, l := range otherSource {
		for _, name := range l.tests {
			test, parts, _ := strings.Cut(name, "/")
			if !strings.Contains(source.String(), "\nfunc "+test+"(t *testing.T) {") {
				t.Errorf("%s is left out, and there is no %s", name, test)
			}
			for sentence := range strings.FieldsFuncSeq(parts, func(r rune) bool { return r == '/' || r == '*' }) {
				if !says(source.String(), sentence) {
					t.Errorf("%s is left out, and no test says %q", name, sentence)
				}
			}
		}
	}
}

// says reports whether a source has a sentence, before which a test may put the lane.
func says(source, sentence string) bool {
	return slices.ContainsFunc([]string{"", ", ", "lane on, ", "lane off, "}, func(before string) bool {
		rest, begins := strings.CutPrefix(sentence, before)
		return begins && strings.Contains(source, `"`+rest+`"`)
	})
}

// A whole test, or a part, is left out even where a part of it is left out for another reason.
func TestLeftOutOrder(t *testing.T) {
	got := skipping("TestD/e", []leftOut{{"", []string{"TestA/b/c", "TestA/b"}}, {"", []string{"TestA"}}})
	if want := "^TestA$|TestD/e|^TestA$/^b$|^TestA$/^b$/^c$"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A name leaves out what it names and nothing else.
func TestLeftOutPattern(t *testing.T) {
	for name, parts := range map[string][][2]string{
		"TestA":           {{"TestA", "TestAB"}},
		"TestA/*/b c (d)": {{"TestA", "TestAB"}, {"anything,_at_all", ""}, {"b_c_(d)", "b_c_(d)e"}},
		"TestA/*, b":      {{"TestA", "XTestA"}, {"lane_on,_b", "lane_on,_bc"}},
	} {
		elements := strings.Split(pattern(name), "/")
		if len(elements) != len(parts) {
			t.Errorf("%q has %d parts, want %d", name, len(elements), len(parts))
			continue
		}
		for i, e := range elements {
			r := regexp.MustCompile(e)
			if !r.MatchString(parts[i][0]) {
				t.Errorf("%s does not match %q", e, parts[i][0])
			}
			if parts[i][1] != "" && r.MatchString(parts[i][1]) {
				t.Errorf("%s matches %q", e, parts[i][1])
			}
		}
	}
}
