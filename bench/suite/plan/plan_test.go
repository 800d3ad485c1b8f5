package plan

import (
	"slices"
	"testing"

	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/rig"
)

// TestBenchMeasuresWhatGoalsNeed: a goal whose figures are not in the plan could never be
// met.
func TestBenchMeasuresWhatGoalsNeed(t *testing.T) {
	goals, err := goal.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{Bench, Full} {
		p, err := New(kind)
		if err != nil {
			t.Fatal(err)
		}
		steps, _, err := p.Steps()
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range goals {
			figures := []goal.Figure{g.Of}
			if g.To != nil {
				figures = append(figures, *g.To)
			}
			for _, f := range figures {
				if !measures(steps, f.Mode, f.Measurement) {
					t.Errorf("goal %s needs %s of %s, which %s does not measure", g.Name, f.Measurement, f.Mode, kind)
				}
			}
		}
	}
}

func measures(steps []Step, mode string, m record.Measurement) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return s.Load.Name == m.Load && string(s.Path) == m.Path && slices.Contains(s.Places, Place{mode, m.Services})
	})
}

func TestEachKindHasStepsAndNamesWhatItLeavesOut(t *testing.T) {
	for _, kind := range []string{Smoke, Bench, Full} {
		p, err := New(kind)
		if err != nil {
			t.Fatal(err)
		}
		steps, skips, err := p.Steps()
		if err != nil || len(steps) < 8 || len(skips) == 0 {
			t.Errorf("%s: %d steps, %d skips, %v", kind, len(steps), len(skips), err)
		}
		for i, s := range steps {
			for _, other := range steps[:i] {
				if s.Load == other.Load && s.Path == other.Path {
					t.Errorf("%s: %s on path %s is there twice", kind, s.Load.Name, s.Path)
				}
			}
		}
	}
	if _, err := New("slow"); err == nil {
		t.Error("a kind that does not exist is accepted")
	}
}

func TestNarrow(t *testing.T) {
	p, err := New(Bench)
	if err != nil {
		t.Fatal(err)
	}
	p.Narrow([]string{"nft", "lace"}, []string{"rtt"}, []int{1}, []rig.Path{rig.Node})
	steps, _, err := p.Steps()
	if err != nil {
		t.Fatal(err)
	}
	want := []Place{{"lace", 1}, {"nft", 1}}
	if len(steps) != 1 || steps[0].Load.Name != "rtt" || !slices.Equal(steps[0].Places, want) {
		t.Errorf("%+v, want rtt at %v", steps, want)
	}
}

// TestTurn: each place is measured once a round, and is first as often as any other.
func TestTurn(t *testing.T) {
	s := Step{Places: []Place{{"a", 1}, {"b", 1}, {"c", 1}}}
	first := map[string]int{}
	for round := range 6 {
		turn := s.Turn(round)
		first[turn[0].Mode]++
		for _, place := range s.Places {
			if !slices.Contains(turn, place) || len(turn) != 3 {
				t.Errorf("round %d: %v", round, turn)
			}
		}
	}
	if first["a"] != 2 || first["b"] != 2 || first["c"] != 2 {
		t.Errorf("first: %v", first)
	}
}

// TestAnUnknownNameIsAnError: not an empty run.
func TestAnUnknownNameIsAnError(t *testing.T) {
	for _, part := range []Part{
		{Modes: []string{"ipvs"}, Services: one, Paths: node, Loads: []string{"rtt"}},
		{Modes: []string{"nft"}, Services: one, Paths: node, Loads: []string{"icmp"}},
	} {
		if _, _, err := (&Plan{Parts: []Part{part}}).Steps(); err == nil {
			t.Errorf("%+v: accepted", part)
		}
	}
}

// TestRarePlaces: a place that two parts name is measured as often as the more frequent says,
// and what is measured seldom is left out of the rounds between.
func TestRarePlaces(t *testing.T) {
	p := Plan{Parts: []Part{
		{Modes: []string{"lace"}, Services: one, Paths: node, Loads: []string{"rtt"}},
		{Modes: []string{"lace", "nft"}, Services: one, Paths: node, Loads: []string{"rtt"}, Every: 3},
	}}
	steps, _, err := p.Steps()
	if err != nil || len(steps) != 1 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for round, want := range []int{2, 1, 1, 2, 1} {
		if turn := steps[0].Turn(round); len(turn) != want || !slices.Contains(turn, Place{"lace", 1}) {
			t.Errorf("round %d: %v, want %d places", round, turn, want)
		}
	}
}
