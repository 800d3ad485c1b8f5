package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/record"
)

func recorded() *record.Run {
	r := &record.Run{
		Rounds: 2, Started: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine:   record.Machine{CPU: "abacus", Cores: 2, Kernel: "6.6"},
		Generator: map[string]float64{"frames-ns": 50},
		Modes:     []record.Mode{{Name: "nft", What: "the kernel", Services: 1, SetupSeconds: 0.25}},
		Skipped:   []record.Skip{{What: "iptables", Why: "missing program iptables-restore: apt-get install iptables"}},
		Notes:     []string{"stopped after 2 of 7 rounds: the time was over"},
	}
	frames := record.Measurement{Load: "udp-frames", Path: "node", Services: 1}
	trip := record.Measurement{Load: "rtt", Path: "node", Services: 1}
	floor := record.Measurement{Load: "floor", Path: "node", Services: 1}
	flood := record.Measurement{Load: "flood-syn", Path: "node", Services: 1}
	for round := range 2 {
		add := func(mode string, m record.Measurement, v map[string]float64) {
			r.Samples = append(r.Samples, record.Sample{Mode: mode, Round: round, Measurement: m, Values: v})
		}
		add("nft", frames, map[string]float64{"mpps": 1, "ns": 1000, "loss": 0})
		add("lace", frames, map[string]float64{"mpps": 2, "ns": 500, "loss": 0.25, "punted": 0.5})
		add("direct", floor, map[string]float64{"mpps": 20, "ns": 50})
		add("nft", trip, map[string]float64{"p50": 20, "p99": 100})
		add("lace", trip, map[string]float64{"p50": 18, "p99": 120, "failed": 1})
		add("nft", flood, flooded(20, 60))
		add("lace", flood, flooded(20, 21))
	}
	r.Samples = append(r.Samples, record.Sample{Mode: "asavie", Measurement: frames, Error: "it broke"})
	return r
}

// flooded are round trips whose p99 is that without and with a flood, and half of it over UDP.
func flooded(without, with float64) map[string]float64 {
	return map[string]float64{
		"quiet-p50": 5, "p50": 6, "quiet-p99": without / 2, "p99": with / 2, "p99-times": with / without,
		"tcp-quiet-p50": 10, "tcp-p50": 11, "tcp-quiet-p99": without, "tcp-p99": with, "tcp-p99-times": with / without,
		"connects": 100, "connected": 99, "flood": 1e5, "failed": 0, "quiet-failed": 0,
	}
}

func TestWhole(t *testing.T) {
	goals, err := goal.All()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Whole(&b, recorded(), goals); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"machine: abacus, 2 processors",
		"generator: 20.0 Mpps alone (50 ns a frame); the fastest figure is 2.0 Mpps (lace at udp-frames), 10.0 times slower",
		"mode nft, 1 services: the kernel; in force after 0.2 s",
		"udp-frames node 1 nft 1.00 Mpps - - - - - 1000 ns, 950 above the floor",
		"udp-frames node 1 lace 2.00 Mpps 2.00 nft 2.00..2.00 - 2 500 ns, 450 above the floor, 25.0 % lost, 50 % through Go, of 2 rounds: one disturbed round shows",
		"rtt node 1 lace 18.0 µs 0.90 nft 0.90..0.90 - 2 p99 120 µs, 2 failed, less is better",
		"flood-syn node 1 nft 3.00 times - - - - - UDP p50 5.00 to 6.00 µs, ×1.20 (2 rounds), UDP p99 10.0 to 30.0 µs, ×3.00 (2 rounds), TCP p50",
		"flood-syn node 1 lace 1.05 times 0.35 nft 0.35..0.35",
		"198 of 200 new connections, 100000 packets/s made, less is better",
		"goal flood-rtt-p99 1.05 <=1.1 met",
		"goal flood-rtt-p99-tcp 1.05 <=1.1 met",
		"goal flood-udp-rtt-p99 unmeasured <=1.1 missed",
		"skipped: iptables: missing program iptables-restore: apt-get install iptables",
		"note: stopped after 2 of 7 rounds",
		"goal established-frames 2 >=2 met",
		"goal rtt-p99 1.2 <=1 missed",
		"goal tcp-1 unmeasured >=1 missed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for _, line := range lines[len(lines)-len(goals):] {
		if f := strings.Fields(line); len(f) != 5 || f[0] != "goal" {
			t.Errorf("%q is no goal line of five words", line)
		}
	}
}

// TestGoalsThatWereNotAskedForAreLeftOut: a part of a run says nothing of what it left out,
// and that what was asked for could not be measured.
func TestGoalsThatWereNotAskedForAreLeftOut(t *testing.T) {
	goals, err := goal.All()
	if err != nil {
		t.Fatal(err)
	}
	r := recorded()
	trip := record.Measurement{Load: "rtt", Path: "node", Services: 1}
	stream := record.Measurement{Load: "tcp-1", Path: "node", Services: 1}
	r.Asked = map[string][]record.Measurement{"lace": {trip, stream}, "nft": {trip, stream}}
	for _, kind := range []string{record.Bench, record.Smoke} {
		r.Kind = kind
		var b bytes.Buffer
		if err := Goals(&b, r, goals); err != nil {
			t.Fatal(err)
		}
		want := "20 of 23 goals are about what was not asked for, and are left out\n"
		if kind == record.Smoke {
			want += "a smoke run is too short for figures: neither they nor what follows mean anything\n"
		}
		want += "goal tcp-1 unmeasured >=1 missed\ngoal rtt-p50 0.9 <=0.95 met\ngoal rtt-p99 1.2 <=1 missed\n"
		if got := b.String(); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// TestGeneratorWithoutFrames: where no load was made of frames nothing is compared.
func TestGeneratorWithoutFrames(t *testing.T) {
	var b bytes.Buffer
	Generator(&b, &record.Run{Generator: map[string]float64{"frames-ns": 50}})
	if got := b.String(); got != "generator: 20.0 Mpps alone (50 ns a frame)\n" {
		t.Errorf("%q", got)
	}
}

func TestMarkdownHasAsManyCellsInEachRow(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, recorded()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "|") {
			n++
			if got := strings.Count(line, "|"); got != len(columns)+1 {
				t.Errorf("%d bars in %q, want %d", got, line, len(columns)+1)
			}
		}
	}
	if n != 9 {
		t.Errorf("%d rows, want 9", n)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.1234: "0.123", 1.2345: "1.23", 12.345: "12.3", 123.4: "123", 1234.4: "1234", 0: "0.000"} {
		if got := number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
