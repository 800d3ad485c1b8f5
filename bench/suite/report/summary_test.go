package report

import (
	"bytes"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/suite/goal"
)

func TestSummary(t *testing.T) {
	goals, err := goal.All()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Summary(&b, recorded(), goals); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Recorded 2030-01-02, 2 rounds",
		" | node | 1 | Mpps | - | 1.00 | - | 2.00 | - | - | 2.00 [2.00..2.00] |\n",
		" | node | 1 | µs | - | 20.0 | - | 18.0 | - | - | 0.90 [0.90..0.90] |\n",
		"| established-frames | 2.00 [2.00..2.00] | ≥ 2 | met |\n",
		"| rtt-p99 | 1.20 [1.20..1.20] | ≤ 1 | **missed** |\n",
		"| node | 1 | times | - | 3.00 | - | 1.05 | - | - | 0.35 [0.35..0.35] |\n",
		"| flood-rtt-p99 | 1.05 [1.05..1.05] | ≤ 1.1 | met |\n",
		"| tcp-1 | unmeasured | ≥ 1 | **missed** |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "floor") || strings.Contains(b.String(), "what all frames cost") {
		t.Errorf("a load of one mode has a row:\n%s", &b)
	}
}
