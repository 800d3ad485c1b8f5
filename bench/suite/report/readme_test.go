package report

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/record"
)

// TestTheReadmeSaysWhatWasRecorded: its figures are those of the recorded run, and nobody
// has changed them by hand.
func TestTheReadmeSaysWhatWasRecorded(t *testing.T) {
	const readme, recorded = "../../../README.md", "../../recorded/bench.json"
	have, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	goals, err := goal.All()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Summary(&text, r, goals); err != nil {
		t.Fatal(err)
	}
	want, err := Insert(have, text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("run make bench-table (- as recorded, + in the README):\n%s", diff)
	}
}

func TestInsert(t *testing.T) {
	old := "a\n" + begin + "x\n" + end + "b\n"
	got, err := Insert([]byte(old), []byte("y\n"))
	if want := "a\n" + begin + "y\n" + end + "b\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{"", begin, end + begin, "text\n" + end} {
		if _, err := Insert([]byte(bad), nil); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}
