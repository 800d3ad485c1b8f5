// Package report writes what a run found, for people: one table, what was left out and why,
// and one line for each goal.
//
// It owns columns and wording. It reads a record and nothing else, so that a table can be
// made again from a recorded run.
package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"lace-cni.io/lace/bench/suite/goal"
	"lace-cni.io/lace/bench/suite/measure"
	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/stats"
)

// row is one mode at one measurement.
type row struct {
	m         record.Measurement
	mode      string
	median    float64
	unit      string
	reference string // mode that the ratio is to; empty: none was measured
	ratio     stats.Comparison
	remarks   string
}

// Columns of the table.
var columns = []string{"load", "path", "services", "mode", "median", "unit", "ratio", "to", "range", "95 %", "n", "remarks"}

func (r row) cells() []string {
	cells := []string{r.m.Load, r.m.Path, strconv.Itoa(r.m.Services), r.mode, number(r.median), r.unit, "-", "-", "-", "-", "-", r.remarks}
	if r.reference != "" && r.ratio.Rounds > 0 {
		c := r.ratio
		cells[6], cells[7] = fmt.Sprintf("%.2f", c.Median), r.reference
		cells[8] = fmt.Sprintf("%.2f..%.2f", c.Low, c.High)
		if !math.IsNaN(c.From) {
			cells[9] = fmt.Sprintf("%.2f..%.2f", c.From, c.To)
		}
		cells[10] = strconv.Itoa(c.Rounds)
	}
	return cells
}

// number writes three or more significant digits, and no exponent.
func number(v float64) string {
	digits := 0
	for limit := 100.0; digits < 3 && math.Abs(v) < limit; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// rows of a run in the order in which they were measured.
func rows(r *record.Run) (out []row) {
	type key struct {
		m    record.Measurement
		mode string
	}
	seen := map[key]bool{}
	for _, s := range r.Samples {
		k := key{s.Measurement, s.Mode}
		load, err := measure.Find(s.Load)
		if seen[k] || s.Error != "" || err != nil {
			continue
		}
		seen[k] = true
		out = append(out, newRow(r, load, s.Mode, s.Measurement))
	}
	return out
}

func newRow(r *record.Run, load *measure.Load, mode string, m record.Measurement) row {
	own := r.Series(mode, m, load.Field)
	out := row{m: m, mode: mode, median: stats.Median(present(own)), unit: load.Unit}
	if ref := reference(m); ref != mode {
		if theirs := r.Series(ref, m, load.Field); len(present(theirs)) > 0 {
			out.reference, out.ratio = ref, stats.Compare(own, theirs)
		}
	}
	out.remarks = strings.Join(remarks(r, load, mode, m), ", ")
	return out
}

// reference is what ratios are to: the kernel with nftables, or for traffic that is not of a
// service the path without any.
func reference(m record.Measurement) string {
	if strings.HasPrefix(m.Load, "direct-") {
		return "direct"
	}
	return "nft"
}

func present(v []float64) (out []float64) {
	for _, x := range v {
		if !math.IsNaN(x) {
			out = append(out, x)
		}
	}
	return out
}

// remarks say what the figure alone does not.
func remarks(r *record.Run, load *measure.Load, mode string, m record.Measurement) (out []string) {
	median := func(field string) (float64, bool) {
		v := present(r.Series(mode, m, field))
		return stats.Median(v), len(v) > 0
	}
	if ns, ok := median("ns"); ok {
		floor := record.Measurement{Load: "floor", Path: m.Path, Services: 1}
		text := fmt.Sprintf("%.0f ns", ns)
		if least := present(r.Series("direct", floor, "ns")); len(least) > 0 && load.Name != "floor" {
			text += fmt.Sprintf(", %.0f above the floor", ns-stats.Median(least))
		}
		out = append(out, text)
	}
	if v, ok := median("loss"); ok && v > 0.001 {
		out = append(out, fmt.Sprintf("%.1f %% lost", 100*v))
	}
	if v, ok := median("punted"); ok && v > 0.001 {
		out = append(out, fmt.Sprintf("%.0f %% through Go", 100*v))
	}
	if v, ok := median("retransmits"); ok {
		again, _ := median("reordered")
		out = append(out, fmt.Sprintf("%.0f retransmitted and %.0f reordered per GiB", v, again))
	}
	if v, ok := median("p99"); ok && load.Field != "p99-times" {
		out = append(out, fmt.Sprintf("p99 %s µs", number(v)))
	}
	if failed := present(r.Series(mode, m, "failed")); len(failed) > 0 {
		if total := sum(failed); total > 0 {
			out = append(out, fmt.Sprintf("%.0f failed", total))
		}
	}
	if _, ok := median("flood"); ok {
		out = append(out, underFlood(r, mode, m)...)
	}
	if load.Less {
		out = append(out, "less is better")
	}
	if n := len(present(r.Series(mode, m, load.Field))); n < stats.Few {
		out = append(out, fmt.Sprintf("of %d rounds: one disturbed round shows", n))
	}
	return out
}

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}

// Table writes the table in columns for a terminal.
func Table(w io.Writer, r *record.Run) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(columns, "\t")))
	for _, row := range rows(r) {
		fmt.Fprintln(t, strings.Join(row.cells(), "\t"))
	}
	return t.Flush()
}

// Markdown writes the table for a document, with the machine above it.
func Markdown(w io.Writer, r *record.Run) error {
	fmt.Fprintf(w, "%s, %d rounds. %s.\n\n", r.Started.UTC().Format("2006-01-02"), r.Rounds, r.Machine)
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for _, row := range rows(r) {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row.cells(), " | ")); err != nil {
			return err
		}
	}
	return nil
}

// Whole writes everything: machine, generator, rigs, table, what was left out, goals last.
func Whole(w io.Writer, r *record.Run, goals []goal.Goal) error {
	fmt.Fprintf(w, "machine: %s\n", r.Machine)
	Generator(w, r)
	for _, m := range r.Modes {
		fmt.Fprintf(w, "mode %s, %d services: %s; in force after %.1f s\n", m.Name, m.Services, m.What, m.SetupSeconds)
	}
	fmt.Fprintln(w)
	if err := Table(w, r); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "skipped: %s: %s\n", s.What, s.Why)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return Goals(w, r, goals)
}

// Goals writes a line for each goal whose figures the run was asked for.
func Goals(w io.Writer, r *record.Run, goals []goal.Goal) error {
	asked := slices.DeleteFunc(slices.Clone(goals), func(g goal.Goal) bool { return !g.AskedOf(r) })
	if n := len(goals) - len(asked); n > 0 {
		fmt.Fprintf(w, "%d of %d goals are about what was not asked for, and are left out\n", n, len(goals))
	}
	if r.Kind == record.Smoke && len(asked) > 0 {
		fmt.Fprintln(w, "a smoke run is too short for figures: neither they nor what follows mean anything")
	}
	for i := range asked {
		if _, err := fmt.Fprintln(w, asked[i].Judge(r)); err != nil {
			return err
		}
	}
	return nil
}

// Generator says how fast the generators are alone, and how close the fastest mode came: a
// generator that is not far above is what was measured.
func Generator(w io.Writer, r *record.Run) {
	ns, ok := r.Generator["frames-ns"]
	if !ok || ns == 0 {
		return
	}
	fastest, mode := 0.0, ""
	for _, s := range r.Samples {
		if v := s.Values["mpps"]; strings.HasSuffix(s.Load, "-frames") && v > fastest {
			fastest, mode = v, s.Mode+" at "+s.Load
		}
	}
	fmt.Fprintf(w, "generator: %.1f Mpps alone (%.0f ns a frame)", 1e3/ns, ns)
	if fastest > 0 {
		fmt.Fprintf(w, "; the fastest figure is %.1f Mpps (%s), %.1f times slower", fastest, mode, 1e3/ns/fastest)
	}
	fmt.Fprintln(w)
}
