package hostport

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Reserve keeps the kernel from giving a port of the span to a process that asks for any,
// under sys, usually /proc/sys/net/ipv4: both families go by it. It writes only when the
// span lies in the range of such ports (ip_local_port_range) and is not reserved already,
// and adds to what is reserved (ip_local_reserved_ports). It reports whether it wrote.
func Reserve(sys string, want Span) (bool, error) {
	given, err := spansIn(filepath.Join(sys, "ip_local_port_range"))
	if err != nil {
		return false, err
	}
	if len(given) != 2 || !want.overlaps(Span{given[0].First, given[1].First}) {
		return false, nil
	}
	path := filepath.Join(sys, "ip_local_reserved_ports")
	reserved, err := spansIn(path)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(reserved, func(s Span) bool { return s.First <= want.First && want.Last <= s.Last }) {
		return false, nil
	}
	var words []string
	for _, s := range append(reserved, want) {
		words = append(words, s.String())
	}
	if err := os.WriteFile(path, []byte(strings.Join(words, ",")), 0o644); err != nil {
		return false, fmt.Errorf("reserving ports %s: %w", want, err)
	}
	return true, nil
}

// spansIn reads numbers and ranges between blanks or commas.
func spansIn(path string) (out []Span, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, w := range strings.FieldsFunc(string(b), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		from, to, isRange := strings.Cut(w, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%s: %q is no port or range of ports", path, w)
		}
		out = append(out, Span{uint16(first), uint16(last)})
	}
	return out, nil
}
