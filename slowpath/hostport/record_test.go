package hostport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// noted is a node on which Lace has reserved 40002 and 50000 beside 8080, and what was amiss
// with its record.
func noted(t *testing.T) (r Reservation, amiss *[]string) {
	t.Helper()
	r = settings(t, "32768 60999", "8080\n")
	amiss = listen(&r)
	if wrote, err := r.Reserve(Span{40002, 40002}, Span{50000, 50000}); !wrote || err != nil {
		t.Fatal(wrote, err)
	}
	return r, amiss
}

func listen(r *Reservation) *[]string {
	heard := &[]string{}
	r.Amiss = func(err error) { *heard = append(*heard, err.Error()) }
	return heard
}

// record is the text of the record, "none" when there is none.
func (r *Reservation) record(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(r.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecordIsWrittenAnew: one that somebody has overwritten or removed is told of once, and says
// the same again, also when nothing is wanted any more.
func TestRecordIsWrittenAnew(t *testing.T) {
	const want = "40002,50000\nbeside 8080\n"
	for name, spoil := range map[string]func(path string) error{
		"garbage": func(path string) error { return os.WriteFile(path, []byte("\x00garbage"), 0o600) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"another": func(path string) error { return os.WriteFile(path, []byte("8080\n"), 0o600) },
		"removed": os.Remove,
	} {
		for _, wanted := range [][]Span{{{40002, 40002}, {50000, 50000}}, nil} {
			r, amiss := noted(t)
			if err := spoil(r.Record); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if wrote, err := r.Reserve(wanted...); wrote || err != nil || r.record(t) != want {
					t.Errorf("%s, wanted %v: wrote %v, %v; the record is %q, want %q", name, wanted, wrote, err, r.record(t), want)
				}
			}
			if len(*amiss) != 1 || !strings.Contains((*amiss)[0], r.Record) {
				t.Errorf("%s: told %q, want once, with the name of the file", name, *amiss)
			}
		}
	}
}

// TestDamagedRecordAfterARestart: of what is wanted and reserved that is taken for Lace's own
// which stands alone; what is part of somebody's range, or is not wanted, is left to him.
func TestDamagedRecordAfterARestart(t *testing.T) {
	r := settings(t, "32768 65535", "33000,40000-40010,50000-50001,61000-65535\n")
	amiss := listen(&r)
	write(t, r.Record, "40002,5000x")
	want := []string{"61000-65535\nbeside 33000,40000-40010,50000-50001\n", "50000-50001,61000-65535\nbeside 33000,40000-40010\n"}
	for i, wanted := range [][]Span{{{61000, 65535}}, {{40002, 40002}, {50000, 50000}, {50001, 50001}}} {
		if wrote, err := r.Reserve(wanted...); wrote || err != nil || r.record(t) != want[i] {
			t.Errorf("wrote %v, %v; the record is %q, want %q", wrote, err, r.record(t), want[i])
		}
	}
	if len(*amiss) != 1 || !strings.Contains((*amiss)[0], "5000x") {
		t.Errorf("told %q, want once, with what is wrong", *amiss)
	}
	if gone, err := r.Release(); err != nil || fmt.Sprint(gone) != "[50000-50001 61000-65535]" || r.read(t) != "33000,40000-40010\n" {
		t.Errorf("took %v, %v; left %q", gone, err, r.read(t))
	}
}

// TestRecordAfterARestart: a Reservation goes on from the record of the one before.
func TestRecordAfterARestart(t *testing.T) {
	before, _ := noted(t)
	r := Reservation{Sys: before.Sys, Record: before.Record}
	amiss := listen(&r)
	if wrote, err := r.Reserve(Span{50000, 50000}, Span{50002, 50002}); !wrote || err != nil || r.record(t) != "40002,50000,50002\nbeside 8080\n" {
		t.Errorf("wrote %v, %v; the record is %q", wrote, err, r.record(t))
	}
	if len(*amiss) > 0 {
		t.Errorf("told %q, want nothing", *amiss)
	}
}

// TestRecordFollowsTheList: what somebody has taken off the list leaves the record, and the
// record goes with the last of it.
func TestRecordFollowsTheList(t *testing.T) {
	r, amiss := noted(t)
	for _, step := range []struct{ list, want string }{
		{"8080,50000\n", "50000\nbeside 8080\n"},
		{"9090,50000\n", "50000\nbeside 9090\n"},
		{"9090\n", "none"},
	} {
		write(t, r.reserved(), step.list)
		if wrote, err := r.Reserve(); wrote || err != nil || r.record(t) != step.want || r.read(t) != step.list {
			t.Errorf("list %q: wrote %v, %v; the record is %q, want %q; the list %q", step.list, wrote, err, r.record(t), step.want, r.read(t))
		}
	}
	if len(*amiss) > 0 {
		t.Errorf("told %q, want nothing", *amiss)
	}
	if gone, err := r.Release(); len(gone) > 0 || err != nil {
		t.Errorf("took %v, %v", gone, err)
	}
}

// TestRangesOfTheOwnerStayWhole: a range that somebody has written over ports that Lace had
// added is his, whether Lace has seen him do it or not; what stands as it was added is taken
// back, also where it touches what others had reserved before.
func TestRangesOfTheOwnerStayWhole(t *testing.T) {
	for _, tc := range []struct{ name, before, owner, after string }{
		{"a range around one", "8080", "8080,40000-40010,50000", "8080,40000-40010"},
		{"a range that touches one", "8080", "40002-40010,50000", "40002-40010"},
		{"one over all", "8080", "32768-60999", "32768-60999"},
		{"other ports", "8080", "9090,40002,50000", "9090"},
		{"none", "40001,50001-50010", "40001-40002,50000-50010", "40001,50001-50010"},
		{"one less", "40001,50001-50010", "40001-40002,50000-50005", "40001,50001-50005"},
	} {
		for _, seen := range []bool{false, true} {
			r := settings(t, "32768 60999", tc.before+"\n")
			wanted := []Span{{40002, 40002}, {50000, 50000}}
			if _, err := r.Reserve(wanted...); err != nil {
				t.Fatal(err)
			}
			write(t, r.reserved(), tc.owner+"\n")
			if seen {
				if _, err := r.Reserve(wanted...); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Release(); err != nil || r.read(t) != tc.after+"\n" {
				t.Errorf("%s, seen: %v: %v; left %q, want %q", tc.name, seen, err, r.read(t), tc.after)
			}
		}
	}
}

// TestRecordOfAnEarlierLace does not say what was beside it, which is what is there now.
func TestRecordOfAnEarlierLace(t *testing.T) {
	r := settings(t, "32768 60999", "8080,40001-40002,50000\n")
	write(t, r.Record, "40002,50000\n")
	if _, err := r.Reserve(); err != nil || r.record(t) != "40002,50000\nbeside 8080,40001\n" {
		t.Errorf("%v; the record is %q", err, r.record(t))
	}
	if gone, err := r.Release(); err != nil || fmt.Sprint(gone) != "[40002 50000]" || r.read(t) != "8080,40001\n" {
		t.Errorf("took %v, %v; left %q", gone, err, r.read(t))
	}
}
