package matrix_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/pipeline"
	"lace-cni.io/lace/fastpath/pipeline/matrix"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

//go:generate go test -count=1 -run ^TestPage$ . -write

var write = flag.Bool("write", false, "write the page instead of comparing with it")

func cases(t testing.TB) []matrix.Case {
	t.Helper()
	all, err := matrix.Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryCellHasOneCase: what is possible is there once, what is not is not there.
func TestEveryCellHasOneCase(t *testing.T) {
	have, label := map[matrix.Cell]int{}, map[string]bool{}
	for _, c := range cases(t) {
		have[c.Cell]++
		if c.Sentence == "" || len(c.Steps) == 0 {
			t.Errorf("%s: has no sentence or no packet", c.Cell)
			continue
		}
		key := c.Family + c.Protocol + string(rune(c.Label()))
		if label[key] {
			t.Errorf("%s: another case has the client port %d", c.Cell, c.Label())
		}
		label[key] = true
	}
	for _, c := range matrix.Cells() {
		switch rule := matrix.Impossible(c); {
		case rule == nil && have[c] != 1:
			t.Errorf("%s: %d cases, want 1", c, have[c])
		case rule != nil && have[c] != 0:
			t.Errorf("%s: has a case, but %s", c, rule.Why)
		}
	}
}

// TestCasesObeyTheRules holds the written cases to what is true of all of them, whoever
// wrote them: the data are not to be believed for being data.
func TestCasesObeyTheRules(t *testing.T) {
	for _, c := range cases(t) {
		frontend := map[string]string{"cluster": "cluster", "external": "external", "nodeport": "node"}[c.Frontend]
		backend := map[string]string{"pod": "web", "itself": c.Client, "nobody": ""}[c.Backend]
		if c.Backend == "node" || c.Backend == "remote" {
			backend = c.Backend
		}
		for i, s := range c.Steps {
			bad := func(rule string) { t.Errorf("%s, packet %d: %s", c.Cell, i+1, rule) }
			if class := s.Reason.Class().String(); class != s.Verdict {
				bad("reason " + s.Reason.String() + " is of class " + class)
			}
			if s.Lane && (c.Lane != "lane-on" || s.Reason != reason.Established && s.Reason != reason.Reply) {
				bad("the lane repeats decisions while it is on, and takes none")
			}
			later := s.Reason == reason.Reply || s.Reason == reason.Established
			carried := c.Lane == "lane-on" && c.Protocol != "sctp"
			if s.Reason == reason.Established && (c.Protocol == "udp" || within(&c)) {
				// Go sees by what the client sends next that there was an answer.
				carried = carried && slices.ContainsFunc(c.Steps[:i], func(s matrix.Step) bool { return s.Reason == reason.Established })
			}
			if later && s.Lane != carried {
				bad("behind a client's first packet, or its second of UDP or within the node, the kernel carries TCP and UDP while the lane is on, and nothing else")
			}
			if s.Verdict == "drop" {
				continue
			}
			out := s.Out
			switch {
			case s.How == "resume" != s.Egress && c.Delivery == "stack" && s.Verdict == "forward":
				bad("what is met on its way out goes on on its way out, where the stack routes")
			case s.How == "stack" && s.Via != s.Met:
				bad("the stack gets a packet on the port where it was met")
			case s.How == "direct" && s.Via != matrix.Way(out.Dst.Place):
				bad("it leaves by a port behind which its destination does not lie")
			case s.Verdict == "answer" && (out.Src.Place != frontend || out.Dst.Place != c.Client):
				bad("an answer speaks in the frontend's name to the client")
			case s.Verdict == "forward" && out.Dst.Place == c.Client && backend != c.Client && out.Src.Place != frontend:
				bad("the client sees another address than the one it called")
			case s.Verdict == "forward" && out.Dst.Place == backend && backend != c.Client && c.Source == "kept" && out.Src.Place != c.Client:
				bad("the source is kept, but the backend sees another")
			}
			if hop := s.In.TTL - out.TTL; s.Verdict == "forward" && (hop == 1) != routed(&c, &s) {
				bad("a packet loses a hop when Lace takes it from one port to another, and only then")
			}
		}
		snat := c.Source == "snat"
		if last := c.Steps[len(c.Steps)-1]; c.Target == "served" && snat && !strings.Contains(seen(&c), "*") && c.Backend != "itself" {
			t.Errorf("%s: the source is to be another, but is %s", c.Cell, last.Out.Src)
		}
	}
}

// seen is whom the backend sees as its client.
func seen(c *matrix.Case) string {
	var s string
	for _, step := range c.Steps {
		if step.Reason == reason.NewFlow {
			s = step.Out.Src.String()
		}
	}
	return s
}

// within: both ends are on this node.
func within(c *matrix.Case) bool { return c.Client != "outside" && c.Backend != "remote" }

// routed: past the stack, and neither from the node nor to it.
func routed(c *matrix.Case, s *matrix.Step) bool {
	return s.How == "direct" && !s.Egress && s.Met != "node" && s.Via != "node"
}

// TestPipeline plays every case to the pipeline alone.
func TestPipeline(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.Cell.String(), func(t *testing.T) { newPlay(t, &c).steps() })
	}
}

// play is one case played to a pipeline of its own.
type play struct {
	*testing.T
	c        *matrix.Case
	flows    *conntrack.Table
	pipeline *pipeline.Pipeline
	tables   *table.Snapshot
	now      time.Duration
	chosen   uint16
}

type setting struct{ lane, stack bool }

var snapshots = map[setting]*table.Snapshot{}

func newPlay(t *testing.T, c *matrix.Case) *play {
	t.Helper()
	flows, err := conntrack.New(256)
	if err != nil {
		t.Fatal(err)
	}
	set := setting{c.Lane == "lane-on", c.Delivery == "stack"}
	if snapshots[set] == nil {
		b, err := table.Encode(nil, matrix.Node{Generation: 1, Lane: set.lane, Stack: set.stack}.Tables())
		if err != nil {
			t.Fatal(err)
		}
		if snapshots[set], err = table.Load(b); err != nil {
			t.Fatal(err)
		}
	}
	return &play{
		T: t, c: c, flows: flows, tables: snapshots[set], now: time.Hour,
		pipeline: pipeline.New(pipeline.Config{Flows: flows, Rand: rand.New(rand.NewPCG(1, 2))}),
	}
}

func (p *play) steps() {
	for i := range p.c.Steps {
		s := &p.c.Steps[i]
		if s.Lane {
			p.mustBeInLane(i)
		}
		p.step(i, s)
		p.now += time.Millisecond
		p.pipeline.Settle(true, int64(p.now))
	}
	if p.c.Lane == "lane-off" || p.c.Protocol == "sctp" {
		p.flows.Range(func(f *conntrack.Flow) bool {
			if f.Mode != conntrack.ModeGo {
				p.Errorf("a flow was handed over to the kernel: %+v", f.Tuple)
			}
			return true
		})
	}
}

// mustBeInLane checks that the flow of a packet was handed over. What the kernel then makes
// of the packet, Go would make of it as well.
func (p *play) mustBeInLane(i int) {
	in := p.c.Steps[i].In.Frame(p.c.Family, p.chosen, p.c.Label())
	tuple := conntrack.Tuple{
		Src: packet.AddrFrom(in.Src.Addr()), Dst: packet.AddrFrom(in.Dst.Addr()), SrcPort: in.Src.Port(), DstPort: in.Dst.Port(), Protocol: in.Protocol,
	}
	var f conntrack.Flow
	if !p.flows.Lookup(&tuple, &f) || f.Mode != conntrack.ModeLane {
		p.Errorf("packet %d: its flow is not in the lane", i+1)
	}
}

func (p *play) step(i int, s *matrix.Step) {
	in := s.In.Frame(p.c.Family, p.chosen, p.c.Label())
	raw := in.Bytes()
	b := append(make([]byte, 0, 4096), raw...)
	trace := &pipeline.Trace{}
	r := p.pipeline.Process(p.tables, b, packet.Punt{Port: matrix.PortIDs[s.Met], Egress: s.Egress}, int64(p.now), trace)
	fail := func(format string, args ...any) {
		p.Helper()
		p.Logf("%s\npacket %d of %q: %v", p.c.Sentence, i+1, p.c.Cell, s.In)
		p.Fatalf(format, args...)
	}
	if r.Verdict.String() != s.Verdict || r.Reason != s.Reason {
		fail("%s %s, want %s %s\n%+v", r.Verdict, r.Reason, s.Verdict, s.Reason, trace.Steps)
	}
	if s.Verdict == "drop" {
		return
	}
	how := map[packet.Inject]string{packet.Direct: "direct", packet.Stack: "stack", packet.Resume: "resume"}[r.Inject]
	if how != s.How || r.Port != matrix.PortIDs[s.Via] {
		fail("leaves %s %d, want %s %s (%d)", how, r.Port, s.How, s.Via, matrix.PortIDs[s.Via])
	}
	out := b[:r.Len]
	if d := s.Out.Differs(out, p.c.Family, &p.chosen, p.c.Label()); d != "" {
		got, _ := frame.Decode(out)
		fail("becomes %s > %s: (-want +got)\n%s", got.Src, got.Dst, d)
	}
}

// TestPage holds docs/reference/packet-matrix.md to the cases.
func TestPage(t *testing.T) {
	const path = "../../../docs/reference/packet-matrix.md"
	want := matrix.Page(cases(t))
	if *write {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("docs/reference/packet-matrix.md is not what the cases say (%v); run go generate ./fastpath/pipeline/matrix", err)
	}
}
