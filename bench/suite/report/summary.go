package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/stats"
)

// summed are the modes that a summary has a column for.
var summed = []string{"direct", "nft", "iptables", "lace", "lace-stack", "lace-off"}

// Summary writes what a front page needs: the outcome in sentences, each measurement with the
// modes side by side, and the goals. Links are those of a page at the root of the project.
func Summary(w io.Writer, r *record.Run, goals []goal.Goal) error {
	var verdicts []goal.Verdict
	for i := range goals {
		verdicts = append(verdicts, goals[i].Judge(r))
	}
	headline(w, verdicts)
	fmt.Fprintf(w, "Recorded %s, %d rounds, %.0f minutes: %s.\n\n", r.Started.UTC().Format("2006-01-02"), r.Rounds, r.Seconds/60, r.Machine)
	heads := append([]string{"what", "path", "services", "unit"}, summed...)
	heads = append(heads, "lace ÷ nft [95 %]")
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat(" --- |", len(heads)))
	for _, m := range measurements(r) {
		load, err := measure.Find(m.Load)
		if err != nil || len(load.Only) == 1 {
			continue
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(side(r, load, m), " | "))
	}
	fmt.Fprintf(w, "\n| goal | what | of | value [95 %%] | target | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, v := range verdicts {
		if _, err := fmt.Fprintln(w, goalRow(v)); err != nil {
			return err
		}
	}
	return nil
}

// measurements in the order in which they were taken.
func measurements(r *record.Run) (out []record.Measurement) {
	seen := map[record.Measurement]bool{}
	for _, s := range r.Samples {
		if s.Error == "" && !seen[s.Measurement] {
			seen[s.Measurement] = true
			out = append(out, s.Measurement)
		}
	}
	return out
}

// side is the row of one measurement.
func side(r *record.Run, load *measure.Load, m record.Measurement) []string {
	unit := load.Unit
	if load.Less {
		unit += " ↓"
	}
	cells := []string{load.What, m.Path, fmt.Sprint(m.Services), unit}
	for _, mode := range summed {
		v := present(r.Series(mode, m, load.Field))
		if len(v) == 0 {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, number(stats.Median(v)))
	}
	return append(cells, interval(stats.Compare(r.Series("lace", m, load.Field), r.Series("nft", m, load.Field))))
}

func interval(c stats.Comparison) string {
	if c.Rounds == 0 {
		return "-"
	}
	if c.Rounds < stats.Few {
		return fmt.Sprintf("%.2f (%d rounds)", c.Median, c.Rounds)
	}
	if math.IsNaN(c.From) { // of sums over all rounds
		return fmt.Sprintf("%.2f", c.Median)
	}
	return fmt.Sprintf("%.2f [%.2f..%.2f]", c.Median, c.From, c.To)
}

// compared are the modes that a goal relates; one that relates two figures of one mode says
// in words which.
func compared(g *goal.Goal) string {
	if g.To == nil || g.To.Mode == g.Of.Mode {
		return g.Of.Mode
	}
	return g.Of.Mode + " ÷ " + g.To.Mode
}

func goalRow(v goal.Verdict) string {
	f := strings.Fields(v.String())
	value := f[2]
	if v.Value.Rounds > 0 && v.Goal.To != nil {
		value = interval(v.Value)
	}
	verdict := f[4]
	if verdict == "missed" {
		verdict = "**missed**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", v.Goal.Name, v.Goal.What, compared(&v.Goal), value, strings.ReplaceAll(strings.ReplaceAll(f[3], ">=", "≥ "), "<=", "≤ "), verdict)
}
