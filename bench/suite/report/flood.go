package report

import (
	"fmt"

	"lace-cni.io/lace/bench/suite/record"
	"lace-cni.io/lace/bench/suite/stats"
)

// underFlood are the remarks of a flood's row: round trips of both protocols without and
// with it, what became of others' new connections, and the rate that the flood reached.
func underFlood(r *record.Run, mode string, m record.Measurement) (out []string) {
	series := func(field string) []float64 { return r.Series(mode, m, field) }
	for _, p := range []struct{ name, prefix string }{{"UDP", ""}, {"TCP", "tcp-"}} {
		for _, q := range []string{"p50", "p99"} {
			quiet, loud := series(p.prefix+"quiet-"+q), series(p.prefix+q)
			out = append(out, fmt.Sprintf("%s %s %s to %s µs, ×%s", p.name, q,
				number(stats.Median(present(quiet))), number(stats.Median(present(loud))), interval(stats.Compare(loud, quiet))))
		}
	}
	return append(out,
		fmt.Sprintf("%.0f of %.0f new connections", sum(present(series("connected"))), sum(present(series("connects")))),
		fmt.Sprintf("%.0f packets/s made", stats.Median(present(series("flood")))))
}
