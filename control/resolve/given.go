package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ParseRanges reads service ranges as a command line has them: prefixes separated by commas.
// Empty: none is given.
func ParseRanges(s string) (out []netip.Prefix, err error) {
	if strings.Contains(s, ",") && strings.Trim(s, ", ") == "" {
		return nil, errors.New("nothing stands between the commas; leave the flag out, or name something")
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%q is no prefix such as 10.96.0.0/16", part)
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("%s has bits behind its length: do you mean %s?", p, p.Masked())
		}
		out = append(out, p)
	}
	return out, nil
}

// JudgeRanges refuses given ranges that cannot be Services', or that overlap.
func JudgeRanges(all []netip.Prefix) error {
	for i, p := range all {
		if !p.IsValid() || p.Bits() == 0 || p.Addr().Is4In6() {
			return fmt.Errorf("service range %s: want a prefix of an IPv4 or IPv6 address, and not everything (--service-cidrs)", p)
		}
		if s, overlaps := Special(p); overlaps {
			return fmt.Errorf("service range %s overlaps %s, which is no Service's (--service-cidrs)", p, s)
		}
		for _, other := range all[:i] {
			if p.Overlaps(other) {
				return fmt.Errorf("service ranges %s and %s overlap (--service-cidrs)", other, p)
			}
		}
	}
	return nil
}
