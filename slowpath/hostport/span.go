package hostport

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Span is a range of ports, both ends included.
type Span struct{ First, Last uint16 }

func (s Span) String() string {
	if s.First == s.Last {
		return strconv.Itoa(int(s.First))
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

func (s Span) overlaps(o Span) bool { return s.First <= o.Last && o.First <= s.Last }

// spansIn reads numbers and ranges between blanks or commas.
func spansIn(path string) ([]Span, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out, err := spans(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

func spans(text string) (out []Span, err error) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		from, to, isRange := strings.Cut(w, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%q is no port or range of ports", w)
		}
		out = append(out, Span{uint16(first), uint16(last)})
	}
	return out, nil
}

// ports is a set of them.
type ports [1 << 16]bool

func portsIn(path string) (*ports, error) {
	in, err := spansIn(path)
	if err != nil {
		return nil, err
	}
	var out ports
	out.set(true, in...)
	return &out, nil
}

func (p *ports) set(in bool, spans ...Span) {
	for _, s := range spans {
		for n := int(s.First); n <= int(s.Last); n++ {
			p[n] = in
		}
	}
}

// has reports whether all of a span is in it.
func (p *ports) has(s Span) bool {
	for n := int(s.First); n <= int(s.Last); n++ {
		if !p[n] {
			return false
		}
	}
	return true
}

// spans are as few as there can be, in order.
func (p *ports) spans() (out []Span) {
	for n := 0; n < len(p); n++ {
		if !p[n] {
			continue
		}
		first := n
		for n+1 < len(p) && p[n+1] {
			n++
		}
		out = append(out, Span{uint16(first), uint16(n)})
	}
	return out
}

// text is a line as the kernel writes it.
func (p *ports) text() string {
	var words []string
	for _, s := range p.spans() {
		words = append(words, s.String())
	}
	return strings.Join(words, ",") + "\n"
}
