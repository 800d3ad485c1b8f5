package hostport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reservation keeps the kernel from giving some ports to processes that ask for any, and
// remembers which of them nobody else had reserved. Not safe for concurrent use.
type Reservation struct {
	Sys    string // settings of the network namespace, usually /proc/sys/net/ipv4: both families go by it
	Record string // file that says what was added to them; it lives as long as they do, until the node starts anew
}

// The kernel's lists: ports that processes are given, and those of them that they are not.
func (r Reservation) given() string    { return filepath.Join(r.Sys, "ip_local_port_range") }
func (r Reservation) reserved() string { return filepath.Join(r.Sys, "ip_local_reserved_ports") }

// Reserve writes only when some of the spans lie in the range of ports that processes are
// given and are not reserved already, and adds these to what is reserved. It reports whether
// it wrote.
//
// The record is written first: what follows from a record without its ports is nothing.
func (r Reservation) Reserve(wanted ...Span) (bool, error) {
	given, err := spansIn(r.given())
	if err != nil {
		return false, err
	}
	if len(given) != 2 {
		return false, nil
	}
	want := slices.DeleteFunc(slices.Clone(wanted), func(s Span) bool { return !s.overlaps(Span{given[0].First, given[1].First}) })
	if len(want) == 0 {
		return false, nil
	}
	reserved, err := spansIn(r.reserved())
	if err != nil {
		return false, err
	}
	var there ports
	there.set(true, reserved...)
	want = slices.DeleteFunc(want, there.has)
	if len(want) == 0 {
		return false, nil
	}
	before, err := r.recorded()
	if err != nil {
		return false, err
	}
	var mine, all ports
	mine.set(true, want...)
	mine.set(false, reserved...) // somebody else's
	mine.set(true, before...)
	all.set(true, append(reserved, want...)...)
	if err := replace(r.Record, mine.text()); err != nil {
		return false, fmt.Errorf("noting which ports are reserved: %w", err)
	}
	return true, r.write(&all)
}

// Release takes back what Reserve has added, and leaves what others have reserved. It
// returns what it took back. Where there is no record it does nothing.
func (r Reservation) Release() ([]Span, error) {
	mine, err := r.recorded()
	if err != nil {
		return nil, err
	}
	reserved, err := spansIn(r.reserved())
	if err != nil {
		return nil, err
	}
	var left, taken ports
	left.set(true, reserved...)
	left.set(false, mine...)
	taken.set(true, reserved...)
	taken.set(false, left.spans()...)
	gone := taken.spans()
	if len(gone) > 0 {
		if err := r.write(&left); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(r.Record); !errors.Is(err, fs.ErrNotExist) {
		return gone, err
	}
	return gone, nil
}

func (r Reservation) recorded() ([]Span, error) {
	s, err := spansIn(r.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return s, err
}

// write replaces what is reserved. The kernel takes an empty line for nothing.
func (r Reservation) write(all *ports) error {
	if err := os.WriteFile(r.reserved(), []byte(all.text()), 0o644); err != nil {
		return fmt.Errorf("reserving ports %s: %w", strings.TrimSpace(all.text()), err)
	}
	return nil
}

// replace writes a file as a whole or not at all.
func replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
