// Package goal holds what Lace is to reach, and says whether a run of the suite reached it.
//
// It owns goals.txt and the rule by which a goal is met: the median over rounds of the ratio
// inside each round lies on the right side of the target. What was asked for and not measured is
// missed.
package goal

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/stats"
)

//go:embed goals.txt
var text string

// Figure is one field of one measurement of one mode.
type Figure struct {
	Mode        string
	Measurement record.Measurement
	Field       string
}

// Goal is one line of goals.txt.
type Goal struct {
	Name   string
	Of     Figure
	To     *Figure // nil: the figure itself is compared with the target
	AtMost bool    // else at least
	Target float64
	What   string // what is compared, for people
}

// All are the goals of goals.txt.
func All() ([]Goal, error) { return parse(text) }

func parse(text string) (goals []Goal, err error) {
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line, what, _ := strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		g, err := parseLine(fields)
		if err != nil {
			return nil, fmt.Errorf("goals, line %d: %w", i+1, err)
		}
		if seen[g.Name] {
			return nil, fmt.Errorf("goals, line %d: %s is there twice", i+1, g.Name)
		}
		seen[g.Name], g.What = true, strings.TrimSpace(what)
		goals = append(goals, g)
	}
	return goals, nil
}

func parseLine(f []string) (g Goal, err error) {
	if len(f) != 7 {
		return g, fmt.Errorf("%d words, want 7", len(f))
	}
	g.Name = f[0]
	if g.Of, err = parseFigure(f[1], f[2]); err != nil {
		return g, err
	}
	switch {
	case f[3] == "-" && f[4] == "-":
	case f[3] == "-" || f[4] == "-":
		return g, fmt.Errorf("reference %q %q: want both or none", f[3], f[4])
	default:
		to, err := parseFigure(or(f[3], f[1]), or(f[4], f[2]))
		if err != nil {
			return g, err
		}
		if to == g.Of {
			return g, fmt.Errorf("%s is compared with itself", g.Name)
		}
		g.To = &to
	}
	if f[5] != ">=" && f[5] != "<=" {
		return g, fmt.Errorf("operator %q: want >= or <=", f[5])
	}
	g.AtMost = f[5] == "<="
	if g.Target, err = strconv.ParseFloat(f[6], 64); err != nil || g.Target <= 0 {
		return g, fmt.Errorf("target %q: want a number above 0", f[6])
	}
	return g, nil
}

func or(word, own string) string {
	if word == "=" {
		return own
	}
	return word
}

func parseFigure(mode, text string) (Figure, error) {
	name, field, ok := strings.Cut(text, ":")
	if !ok || field == "" {
		return Figure{}, fmt.Errorf("%q: want LOAD/PATH/SERVICES:FIELD", text)
	}
	m, err := record.ParseMeasurement(name)
	return Figure{mode, m, field}, err
}

// Verdict is what a run says about a goal.
type Verdict struct {
	Goal  Goal
	Value stats.Comparison // of an absolute goal: of the figure itself
	Met   bool
}

// AskedOf says whether the run was to measure what the goal is about.
func (g *Goal) AskedOf(r *record.Run) bool {
	asked := func(f *Figure) bool { return slices.Contains(r.Asked[f.Mode], f.Measurement) }
	return r.Asked == nil || asked(&g.Of) && (g.To == nil || asked(g.To))
}

// Judge looks a goal up in a run.
func (g *Goal) Judge(r *record.Run) Verdict {
	of := r.Series(g.Of.Mode, g.Of.Measurement, g.Of.Field)
	v := Verdict{Goal: *g}
	switch {
	case g.To == nil:
		v.Value = stats.Compare(of, ones(len(of)))
	case counts[g.Of.Field]:
		v.Value = compareCounts(of, r.Series(g.To.Mode, g.To.Measurement, g.To.Field))
	default:
		v.Value = stats.Compare(of, r.Series(g.To.Mode, g.To.Measurement, g.To.Field))
	}
	m := v.Value.Median
	v.Met = !math.IsNaN(m) && (m >= g.Target) != g.AtMost || m == g.Target
	return v
}

// counts are fields that are often zero: a ratio inside a round would say nothing.
var counts = map[string]bool{"retransmits": true, "reordered": true, "duplicates": true}

// compareCounts relates the sums of the rounds that have both, with one added to each sum so
// that none is divided by zero.
func compareCounts(of, to []float64) stats.Comparison {
	a, b, rounds := 1.0, 1.0, 0
	for i := range min(len(of), len(to)) {
		if math.IsNaN(of[i]) || math.IsNaN(to[i]) {
			continue
		}
		a, b, rounds = a+of[i], b+to[i], rounds+1
	}
	if rounds == 0 {
		return stats.Compare(nil, nil)
	}
	c := stats.Compare([]float64{a}, []float64{b})
	c.Rounds = rounds
	return c
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// String is the line "goal NAME VALUE TARGET met|missed".
func (v Verdict) String() string {
	value, operator, verdict := "unmeasured", ">=", "missed"
	if v.Value.Rounds > 0 {
		value = strconv.FormatFloat(v.Value.Median, 'g', 4, 64)
	}
	if v.Goal.AtMost {
		operator = "<="
	}
	if v.Met {
		verdict = "met"
	}
	return fmt.Sprintf("goal %s %s %s%s %s", v.Goal.Name, value, operator, strconv.FormatFloat(v.Goal.Target, 'g', -1, 64), verdict)
}
