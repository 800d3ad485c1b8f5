package goal

import (
	"strings"
	"testing"

	"lace-cni.io/lace/bench/suite/record"
)

func TestGoalsParse(t *testing.T) {
	goals, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(goals) < 15 {
		t.Errorf("%d goals only", len(goals))
	}
	byName := map[string]Goal{}
	for _, g := range goals {
		if g.What == "" {
			t.Errorf("%s does not say what it compares", g.Name)
		}
		byName[g.Name] = g
	}
	if g := byName["services-new"]; g.To == nil || g.To.Mode != "lace" || g.To.Measurement.Services != 1 || g.Of.Measurement.Services != 10000 {
		t.Errorf("services-new is %+v", g)
	}
	if g := byName["flow-memory"]; g.To != nil || !g.AtMost || g.Target != 512 {
		t.Errorf("flow-memory is %+v", g)
	}
}

func TestNonsenseIsRefusedWithItsLine(t *testing.T) {
	for _, c := range []struct{ sentence, line string }{
		{"too few words", "tcp lace tcp-1/node/1:gbps nft = >="},
		{"no field", "tcp lace tcp-1/node/1 nft = >= 1"},
		{"no such operator", "tcp lace tcp-1/node/1:gbps nft = > 1"},
		{"no number", "tcp lace tcp-1/node/1:gbps nft = >= fast"},
		{"no services", "tcp lace tcp-1/node:gbps nft = >= 1"},
		{"half a reference", "tcp lace tcp-1/node/1:gbps - = >= 1"},
		{"against itself", "tcp lace tcp-1/node/1:gbps = = >= 1"},
		{"twice", "tcp lace tcp-1/node/1:gbps nft = >= 1\n\ntcp lace tcp-1/node/1:gbps nft = >= 1"},
	} {
		_, err := parse("# a comment\n" + c.line)
		if err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: error %v", c.sentence, err)
		}
	}
}

func TestJudge(t *testing.T) {
	one := record.Measurement{Load: "tcp-1", Path: "node", Services: 1}
	run := &record.Run{Rounds: 2}
	add := func(mode string, round int, field string, v float64) {
		run.Samples = append(run.Samples, record.Sample{Mode: mode, Round: round, Measurement: one, Values: map[string]float64{field: v}})
	}
	for round, v := range []float64{10, 30} {
		add("nft", round, "gbps", v)
		add("lace", round, "gbps", v*1.1)
		add("nft", round, "retransmits", 0)
		add("lace", round, "retransmits", float64(round)) // 0 and 1
		add("lace", round, "bytes", 512)
	}
	for _, c := range []struct{ sentence, line, want string }{
		{"the ratio is taken inside a round", "a lace tcp-1/node/1:gbps nft = >= 1.05", "goal a 1.1 >=1.05 met"},
		{"too slow", "a lace tcp-1/node/1:gbps nft = >= 1.2", "goal a 1.1 >=1.2 missed"},
		{"too much", "a lace tcp-1/node/1:gbps nft = <= 1.05", "goal a 1.1 <=1.05 missed"},
		{"exactly the target, absolute", "a lace tcp-1/node/1:bytes - - <= 512", "goal a 512 <=512 met"},
		{"counts are summed, one added", "a lace tcp-1/node/1:retransmits nft = <= 1.5", "goal a 2 <=1.5 missed"},
		{"a mode that was skipped", "a ipvs tcp-1/node/1:gbps nft = >= 1", "goal a unmeasured >=1 missed"},
		{"a mode that was skipped, at most", "a ipvs tcp-1/node/1:gbps nft = <= 1", "goal a unmeasured <=1 missed"},
	} {
		goals, err := parse(c.line)
		if err != nil {
			t.Fatal(err)
		}
		if got := goals[0].Judge(run).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.sentence, got, c.want)
		}
	}
}
