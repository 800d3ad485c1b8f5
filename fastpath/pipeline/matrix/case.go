package matrix

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"lace-cni.io/lace/fastpath/reason"
)

//go:embed testdata/*.txt
var files embed.FS

// Case is what becomes of the packets of one cell.
type Case struct {
	Cell
	Sentence string
	Steps    []Step
}

// Step is one packet and what it becomes.
type Step struct {
	Lane    bool // the kernel carries it; else Go decides
	Egress  bool // it is met on its way out of the port rather than in
	Met     string
	In      Packet
	Verdict string // forward, answer, pass, drop
	Reason  reason.Reason
	How     string // direct, stack, resume; "" when dropped
	Via     string // the port that How speaks of; "" when dropped
	Out     Packet // none when dropped
}

// Load reads the cases, in the order of their files.
func Load() ([]Case, error) {
	names, err := fs.Glob(files, "testdata/*.txt")
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		more, err := parse(string(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cases = append(cases, more...)
	}
	return cases, nil
}

// parse reads cases in the syntax that the package's comment describes.
func parse(text string) (cases []Case, err error) {
	var cells []Cell
	var at Case
	flush := func() {
		for _, c := range cells {
			at.Cell = c
			cases = append(cases, at)
		}
		cells, at = nil, Case{}
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		head, isHead := strings.CutPrefix(line, "case ")
		switch {
		case line == "":
			flush()
		case isHead:
			cells, err = parseCells(head)
		case strings.HasPrefix(line, "  "):
			var s Step
			s, err = parseStep(line)
			at.Steps = append(at.Steps, s)
		default:
			at.Sentence = line
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	flush()
	return cases, lines.Err()
}

func parseStep(line string) (s Step, err error) {
	f := strings.Split(line, "|")
	for len(f) < 6 {
		f = append(f, "")
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	way, met, _ := strings.Cut(f[1], " ")
	verdict, why, _ := strings.Cut(f[3], " ")
	s = Step{Lane: f[0] == "lane", Egress: way == "out", Met: met, Verdict: verdict}
	s.How, s.Via, _ = strings.Cut(f[4], " ")
	var known bool
	if s.Reason, known = reason.Parse(why); !known {
		return s, fmt.Errorf("%q is no reason", why)
	}
	if len(f) != 6 || f[0] != "lane" && f[0] != "go" || way != "in" && way != "out" || PortIDs[met] == 0 {
		return s, fmt.Errorf("%q is no step", line)
	}
	if s.In, err = parsePacket(f[2]); err != nil {
		return s, err
	}
	if f[5] != "" {
		s.Out, err = parsePacket(f[5])
	}
	if gone := s.Verdict == "drop"; gone != (f[5] == "") || gone != (f[4] == "") {
		return s, fmt.Errorf("%q: what is dropped leaves nowhere, and everything else somewhere", line)
	}
	return s, err
}

// Label is the client's port, which no other case of the file has.
func (c *Case) Label() uint16 {
	p := &c.Steps[0].In
	if p.About != nil {
		return p.About.Dst.Port
	}
	return p.Src.Port
}
