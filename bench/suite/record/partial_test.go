package record

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPartOfARunReplacesNoRecord: it is put beside, and says that it is a part; without a
// figure nothing is put anywhere.
func TestAPartOfARunReplacesNoRecord(t *testing.T) {
	dir := t.TempDir()
	path, why := filepath.Join(dir, "run.json"), errors.New("stopped after 1 of 7 rounds")
	whole := Run{Layout: Layout, Kind: Bench, Rounds: 7}
	if err := whole.Write(path); err != nil {
		t.Fatal(err)
	}
	part := Run{Layout: Layout, Kind: Bench, Rounds: 1}
	if err := part.WritePart(path, why); !errors.Is(err, why) || !strings.Contains(err.Error(), "nothing is recorded") {
		t.Errorf("a part without figures: %v", err)
	}
	if _, err := os.Lstat(path + PartialSuffix); !os.IsNotExist(err) {
		t.Errorf("there is a file with nothing: %v", err)
	}
	part.Samples = []Sample{{Mode: "nft", Measurement: Measurement{"rtt", "node", 1}}}
	if err := part.WritePart(path, why); !errors.Is(err, why) || !strings.Contains(err.Error(), "in "+path+PartialSuffix) {
		t.Errorf("a part with a figure: %v, want the reason and the file", err)
	}
	if r, err := Read(path + PartialSuffix); err != nil || r.Rounds != 1 || !strings.Contains(strings.Join(r.Notes, "\n"), why.Error()) {
		t.Errorf("the part: %+v, %v, want one round and why it is one", r, err)
	}
	if r, err := Read(path); err != nil || r.Rounds != 7 {
		t.Errorf("the record: %+v, %v, want it as it was", r, err)
	}
}

// TestARecordIsReplacedWhole: a link stays one, and what cannot be written leaves what was
// there, and nothing else.
func TestARecordIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "run.json"), filepath.Join(dir, "link.json")
	r := Run{Layout: Layout, Rounds: 1}
	for _, err := range []error{r.Write(path), os.Symlink("run.json", link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Rounds = 2
	if err := r.Write(link); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || got.Rounds != 2 {
		t.Errorf("behind the link: %+v, %v, want the second run", got, err)
	}
	r.Generator = map[string]float64{"frames-ns": math.NaN()}
	if err := r.Write(path); err == nil {
		t.Error("what is no JSON was written")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("%v, %v: want the record and the link", files, err)
	}
}
