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

	// Amiss is told of a record that is not as it was left, which then is written anew. It may be
	// nil.
	Amiss func(error)

	account *account // nil: the record has not been read yet
}

// The kernel's lists: ports that processes are given, and those of them that they are not.
func (r *Reservation) given() string    { return filepath.Join(r.Sys, "ip_local_port_range") }
func (r *Reservation) reserved() string { return filepath.Join(r.Sys, "ip_local_reserved_ports") }

// Reserve adds to what is reserved those of the spans that lie in the range of ports which
// processes are given and are not reserved already. It reports whether it added any. It brings
// the record in line with what is reserved, whatever is wanted.
//
// The record is written first: what follows from a record without its ports is nothing.
func (r *Reservation) Reserve(wanted ...Span) (bool, error) {
	given, err := spansIn(r.given())
	if err != nil {
		return false, err
	}
	if len(given) != 2 {
		return false, nil
	}
	want := slices.DeleteFunc(slices.Clone(wanted), func(s Span) bool { return !s.overlaps(Span{given[0].First, given[1].First}) })
	if len(want) == 0 && !r.noted() {
		return false, nil
	}
	there, err := portsIn(r.reserved())
	if err != nil && len(want) == 0 {
		return false, nil // the record waits until it can be read
	}
	if err != nil {
		return false, err
	}
	if err := r.open(there); err != nil {
		return false, err
	}
	r.account.follow(there)
	r.account.reclaim(there, want)
	missing := slices.DeleteFunc(want, there.has)
	r.account.add(there, missing)
	if err := r.save(); err != nil {
		return false, fmt.Errorf("noting which ports are reserved: %w", err)
	}
	if len(missing) == 0 {
		return false, nil
	}
	there.set(true, missing...)
	return true, r.write(there)
}

// noted reports whether there is, or was, a record.
func (r *Reservation) noted() bool {
	if r.account != nil {
		return true
	}
	_, err := os.Lstat(r.Record)
	return err == nil
}

// open reads the record once. One that cannot be read leaves open what of that which is there
// now was added.
func (r *Reservation) open(there *ports) error {
	if r.account != nil {
		return nil
	}
	text, err := os.ReadFile(r.Record)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.account = &account{}
	case err != nil:
		return err
	default:
		r.account, err = accountOf(string(text), there)
		if err != nil {
			r.amiss(err)
			r.account = &account{unclear: *there}
		}
		r.account.written = string(text)
	}
	return nil
}

// save writes the record anew if it does not say what it should.
func (r *Reservation) save() error {
	text, found := r.account.text(), ""
	switch b, err := os.ReadFile(r.Record); {
	case err == nil:
		found = string(b)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if found != r.account.written {
		r.amiss(errors.New("somebody else has changed or removed it"))
	}
	if found != text {
		if err := replace(r.Record, text); err != nil {
			return err
		}
	}
	r.account.written = text
	return nil
}

func (r *Reservation) amiss(err error) {
	if r.Amiss != nil {
		r.Amiss(fmt.Errorf("%s: %w", r.Record, err))
	}
}

// Release takes back what Reserve has added and still is as it was added, and leaves what
// others have reserved, before or since. It returns what it took back. Where there is no record
// it does nothing.
func (r *Reservation) Release() ([]Span, error) {
	text, err := os.ReadFile(r.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	there, err := portsIn(r.reserved())
	if err != nil {
		return nil, err
	}
	a, err := accountOf(string(text), there)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; take what Lace has added out of %s, and remove this file", r.Record, err, r.reserved())
	}
	a.follow(there)
	gone := a.mine.spans()
	if len(gone) > 0 {
		there.set(false, gone...)
		if err := r.write(there); err != nil {
			return nil, err
		}
	}
	return gone, os.Remove(r.Record)
}

// write replaces what is reserved. The kernel takes an empty line for nothing.
func (r *Reservation) write(all *ports) error {
	if err := os.WriteFile(r.reserved(), []byte(all.text()), 0o644); err != nil {
		return fmt.Errorf("reserving ports %s: %w", strings.TrimSpace(all.text()), err)
	}
	return nil
}

// replace writes a file as a whole or not at all; without text it removes it.
func replace(path, text string) error {
	if text == "" {
		return os.Remove(path)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
