package record

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMeasurement(t *testing.T) {
	m, err := ParseMeasurement("udp-frames/node/10000")
	if err != nil || m != (Measurement{"udp-frames", "node", 10000}) || m.String() != "udp-frames/node/10000" {
		t.Errorf("%v, %v", m, err)
	}
	for _, bad := range []string{"", "udp-frames", "udp-frames/node", "udp-frames/node/x", "udp-frames/node/0", "/node/1", "a//1", "a/b/1/c"} {
		if _, err := ParseMeasurement(bad); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}

func TestSeriesHasAPlaceForEachRound(t *testing.T) {
	m := Measurement{"rtt", "node", 1}
	r := Run{Rounds: 3, Samples: []Sample{
		{Mode: "nft", Round: 2, Measurement: m, Values: map[string]float64{"p50": 7}},
		{Mode: "nft", Round: 0, Measurement: m, Values: map[string]float64{"p50": 5}},
		{Mode: "nft", Round: 1, Measurement: m, Error: "no answer"},
		{Mode: "lace", Round: 1, Measurement: m, Values: map[string]float64{"p50": 9}},
		{Mode: "nft", Round: 3, Measurement: m, Values: map[string]float64{"p50": 11}}, // of a round that was not finished
	}}
	got := r.Series("nft", m, "p50")
	if len(got) != 3 || got[0] != 5 || !math.IsNaN(got[1]) || got[2] != 7 {
		t.Errorf("%v, want [5 NaN 7]", got)
	}
}

func TestARunIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	r := &Run{Layout: Layout, Kind: "smoke", Rounds: 1, Machine: ThisMachine(),
		Samples: []Sample{{Mode: "nft", Measurement: Measurement{"rtt", "node", 1}, Values: map[string]float64{"p50": 1.5}}},
		Skipped: []Skip{{"iptables", "not there"}}}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, why := range map[string]string{
		strings.Replace(string(b), `"layout":1`, `"layout":99`, 1): "another layout",
		"{": "no JSON",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("%s: accepted", why)
		}
	}
}

func TestThisMachineIsKnown(t *testing.T) {
	m := ThisMachine()
	if m.CPU == "" || m.Cores < 1 || m.Kernel == "" || m.Go == "" || m.MemoryMiB < 64 {
		t.Errorf("%+v", m)
	}
}
