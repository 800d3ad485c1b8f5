package dataplane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
)

// TestLogIsForPrograms: the JSON log says what was repaired by its word, and how long the
// start took in seconds, once.
func TestLogIsForPrograms(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&said, nil))
	line := func(write func()) string {
		said.Reset()
		write()
		return said.String()
	}
	flows, err := conntrack.New(64)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{config: Config{Log: log, Workers: 1}, flows: flows, repairs: &repairs{log: log}}
	n.status.StartSeconds = 0.151

	for _, c := range []struct {
		sentence, line, word string
		has                  bool
	}{
		{"a repair has the word of the metric", line(func() { n.repairs.note(counter.RepairTrunk, "lace0") }), `"what":"trunk"`, true},
		{"a start has its seconds", line(func() { n.saysServing(false) }), `"startSeconds":0.151`, true},
		{"a trunk that is built again is no start", line(func() { n.saysServing(true) }), "startSeconds", false},
	} {
		if strings.Contains(c.line, c.word) != c.has {
			t.Errorf("%s: %s in %s is %v", c.sentence, c.word, c.line, !c.has)
		}
	}
}
