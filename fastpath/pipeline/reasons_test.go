package pipeline

import (
	"flag"
	"os"
	"testing"

	"lace-cni.io/lace/fastpath/reason"
)

// elsewhere are the reasons that others give: the kernel's programs and the worker.
var elsewhere = map[reason.Reason]string{
	reason.None:         "means undecided",
	reason.ForeignFrame: "the worker and XDP, before the pipeline",
	reason.NoWorker:     "XDP, without a socket",
	reason.Policed:      "the kernel's programs, while Go is busy",
}

// TestMain checks, when all scenarios have been played, that each reason the pipeline
// can give was the expectation of one. A run of chosen tests is not judged.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && complete() {
		for r := range reason.Count {
			if _, other := elsewhere[r]; other == met.reasons[r] {
				println("FAIL: reason " + r.String() + ": every reason of the pipeline, and no other, must be met by a scenario")
				code = 1
			}
		}
	}
	os.Exit(code)
}

// complete reports whether every scenario was played.
func complete() bool {
	for _, name := range []string{"test.run", "test.skip", "test.fuzz", "test.list", "test.bench"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}
