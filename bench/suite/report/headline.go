package report

import (
	"fmt"
	"io"
	"strings"

	"lace-cni.io/lace/bench/suite/goal"
)

// sentences are what people take away from a run, each of the goals whose medians it says.
// One whose goals were not measured is left out.
var sentences = []struct {
	goals []string
	text  string
}{
	{[]string{"established-frames", "rtt-p50"}, "Of established UDP flows Lace carries %.2f times the packets that kube-proxy's nftables rules carry in the same processor time, and a round trip takes %.2f of their time."},
	{[]string{"new-flows", "connect"}, "Beginnings, which Go decides, go at another rate than by those rules: first packets of UDP flows at %.2f times theirs, TCP connections that are opened, used once and closed at %.2f times."},
}

// headline writes the sentences, and how many goals are met.
func headline(w io.Writer, verdicts []goal.Verdict) {
	byName, met := map[string]goal.Verdict{}, 0
	for _, v := range verdicts {
		byName[v.Goal.Name] = v
		if v.Met {
			met++
		}
	}
	var out []string
	for _, s := range sentences {
		var figures []any
		for _, name := range s.goals {
			if v := byName[name].Value; v.Rounds > 0 {
				figures = append(figures, v.Median)
			}
		}
		if len(figures) == len(s.goals) {
			out = append(out, fmt.Sprintf(s.text, figures...))
		}
	}
	out = append(out, fmt.Sprintf("Of the %d [goals](bench/suite/goal/goals.txt) below %d are met.", len(verdicts), met))
	fmt.Fprintf(w, "%s\n\n", strings.Join(out, " "))
}
