package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/stats"
)

// row is one line of the table: a field of both sides, or of programs that only one has.
type row struct {
	what, unit  string
	load        string
	lace, proxy string // fields; empty: that side has none
}

func rows(o *options) []row {
	var out []row
	for _, l := range []struct{ load, what string }{{loadIdle, "idle"}, {loadLoaded, "full packet load"}} {
		out = append(out,
			row{"change to first packet, " + l.what + ", p50", "ms", l.load, "p50", "p50"},
			row{"change to first packet, " + l.what + ", p99", "ms", l.load, "p99", "p99"},
			row{"  of it the API's own write, " + l.what + ", p50", "ms", l.load, "write-p50", "write-p50"},
			row{"  of it the API's own write, " + l.what + ", p99", "ms", l.load, "write-p99", "write-p99"},
		)
	}
	changed := fmt.Sprintf("memory after %d changes", churn)
	return append(out,
		row{"packets that arrived meanwhile", "Mpps", loadLoaded, "load-p50", "load-p50"},
		row{"cold start to first packet", "s", loadCold, "first", "first"},
		row{"cold start to everything in force", "s", loadCold, "complete", "complete"},
		row{"memory after a start: lace-agent, kube-proxy", "MiB", loadMemory, "lace-agent", "kube-proxy"},
		row{changed + ": lace-agent, kube-proxy", "MiB", loadMemory, "lace-agent-changed", "kube-proxy-changed"},
		row{"  at its peak", "MiB", loadMemory, "lace-agent-peak-changed", "kube-proxy-peak-changed"},
		row{"memory after a start: lace-fastpath", "MiB", loadMemory, "lace-fastpath", ""},
		row{changed + ": lace-fastpath", "MiB", loadMemory, "lace-fastpath-changed", ""},
		row{"  at its peak, with what it maps of BPF maps", "MiB", loadMemory, "lace-fastpath-peak-changed", ""},
		row{"  BPF maps, in the kernel", "MiB", loadMemory, "lace-fastpath-maps-changed", ""},
		row{fmt.Sprintf("writes to the API in %s of rest", o.rest), "", loadRest, "writes", ""},
	)
}

// report writes the machine, the table, what was remarkable, and a line for each goal.
func report(w io.Writer, r *record.Run, o *options) error {
	fmt.Fprintf(w, "machine: %s\n", r.Machine)
	period := "its default, 1 s"
	if o.proxyPeriod > 0 {
		period = o.proxyPeriod.String()
	}
	fmt.Fprintf(w, "%d Services, %d endpoints each for changes and %d for starts; %d changes and %d starts of each side; kube-proxy's minSyncPeriod: %s; %.0f s\n\n",
		o.services, o.endpoints, o.most, o.changes, o.starts, period, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIGURE\tLACE\tKUBE-PROXY\tUNIT\tRATIO")
	for _, line := range rows(o) {
		lace, proxy := median(r, o, "lace", line.load, line.lace), median(r, o, "kube-proxy", line.load, line.proxy)
		if math.IsNaN(lace) && math.IsNaN(proxy) {
			continue
		}
		ratio := math.NaN()
		if line.proxy != "" {
			ratio = lace / proxy
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", line.what, number(lace), number(proxy), line.unit, number(ratio))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, g := range goals(o.services) {
		if _, err := fmt.Fprintln(w, g.Judge(r)); err != nil {
			return err
		}
	}
	return nil
}

// median of a field over rounds; NaN: it was not measured.
func median(r *record.Run, o *options, side, load, field string) float64 {
	m := record.Measurement{Load: load, Path: onNode, Services: o.services}
	var v []float64
	for _, x := range r.Series(side, m, field) {
		if !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	return stats.Median(v)
}

// number writes three significant digits or more, and nothing that was not measured.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v == math.Trunc(v) || math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
