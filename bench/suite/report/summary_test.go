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
		"Of established UDP flows Lace carries 2.00 times the packets that kube-proxy's nftables rules carry in the same processor time, and a round trip takes 0.90 of their time. Of the 23 [goals](bench/suite/goal/goals.txt) below 4 are met.\n",
		"Recorded 2030-01-02, 2 rounds",
		" | node | 1 | Mpps | - | 1.00 | - | 2.00 | - | - | 2.00 (2 rounds) |\n",
		" | node | 1 | µs ↓ | - | 20.0 | - | 18.0 | - | - | 0.90 (2 rounds) |\n",
		"| lace ÷ nft | 2.00 (2 rounds) | ≥ 2 | met |\n",
		"| rtt-p99 | round trip of a datagram, 99th percentile | lace ÷ nft | 1.20 (2 rounds) | ≤ 1 | **missed** |\n",
		"| node | 1 | times ↓ | - | 3.00 | - | 1.05 | - | - | 0.35 (2 rounds) |\n",
		"| lace | 1.05 (2 rounds) | ≤ 1.1 | met |\n",
		"| lace ÷ nft | unmeasured | ≥ 1 | **missed** |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "floor") || strings.Contains(b.String(), "what all frames cost") {
		t.Errorf("a load of one mode has a row:\n%s", &b)
	}
}
