package hostport

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// settings are a node's, in files.
func settings(t *testing.T, given, reserved string) Reservation {
	dir := files(t, map[string]string{"ip_local_port_range": given, "ip_local_reserved_ports": reserved})
	return Reservation{Sys: dir, Record: filepath.Join(dir, "record")}
}

func (r *Reservation) read(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(r.reserved())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReserve(t *testing.T) {
	for _, tc := range []struct{ name, given, reserved, want string }{
		{"a range outside of what processes get is left alone", "32768\t60999\n", "8080\n", "8080\n"},
		{"one inside is reserved beside what is", "32768\t65535\n", "8080,9000-9010\n", "8080,9000-9010,61000-65535\n"},
		{"one that touches it too", "32768\t61000\n", "\n", "61000-65535\n"},
		{"one that is reserved stays", "1024\t65535\n", "60000-65535\n", "60000-65535\n"},
		{"one of which a part is reserved is completed", "1024\t65535\n", "60000-62000,64000\n", "60000-65535\n"},
	} {
		r := settings(t, tc.given, tc.reserved)
		wrote, err := r.Reserve(Span{61000, 65535})
		if got := r.read(t); err != nil || got != tc.want || wrote != (tc.want != tc.reserved) {
			t.Errorf("%s: %q, wrote %v, %v; want %q", tc.name, got, wrote, err, tc.want)
		}
		if again, err := r.Reserve(Span{61000, 65535}); again || err != nil {
			t.Errorf("%s: written twice, %v", tc.name, err)
		}
		if _, err := r.Release(); err != nil || r.read(t) != tc.reserved {
			t.Errorf("%s: released, it is %q, %v; want %q", tc.name, r.read(t), err, tc.reserved)
		}
		if _, err := os.Stat(r.Record); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the record after the release: %v, want none", tc.name, err)
		}
	}
	r := settings(t, "1 65535", "x")
	if _, err := r.Reserve(Span{61000, 65535}); err == nil || !strings.Contains(err.Error(), "x") {
		t.Errorf("error %v, want one that names what is wrong", err)
	}
}

// TestReserveSeveral: of several spans those are reserved that processes could get, and no other.
func TestReserveSeveral(t *testing.T) {
	r := settings(t, "32768 60999", "40000,50000\n")
	want := []Span{{30080, 30080}, {40000, 40000}, {40002, 40002}, {61000, 65535}, {50000, 50001}}
	if wrote, err := r.Reserve(want...); !wrote || err != nil || r.read(t) != "40000,40002,50000-50001\n" {
		t.Errorf("wrote %v, %v: %q", wrote, err, r.read(t))
	}
	if wrote, err := r.Reserve(want...); wrote || err != nil {
		t.Errorf("written twice: %v", err)
	}
	if _, err := r.Release(); err != nil || r.read(t) != "40000,50000\n" {
		t.Errorf("released, it is %q, %v", r.read(t), err)
	}
}

// TestReleaseTakesItsOwn: what others reserved before and meanwhile stays, over restarts too.
func TestReleaseTakesItsOwn(t *testing.T) {
	r := settings(t, "1024 65535", "61500-61600,8080\n")
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		t.Helper()
		must(nil, os.WriteFile(r.reserved(), []byte(text), 0o600))
	}
	must(r.Reserve(Span{61000, 62000}))
	write("8080,9090,61000-62000\n") // somebody adds one
	must(r.Reserve(Span{61000, 62000}))
	write("9090,61500-61600\n") // somebody takes away what Lace has added, and another thing
	must(r.Reserve(Span{61000, 62000}))
	must(r.Reserve(Span{62500, 62501})) // another range, by a later start
	gone, err := r.Release()
	if diff := cmp.Diff([]Span{{61000, 61499}, {61601, 62000}, {62500, 62501}}, gone); err != nil || diff != "" {
		t.Errorf("%v, taken back (-want +got):\n%s", err, diff)
	}
	if got := r.read(t); got != "9090,61500-61600\n" {
		t.Errorf("left %q", got)
	}
	if gone, err := r.Release(); err != nil || gone != nil {
		t.Errorf("a second release took %v, %v", gone, err)
	}
}

// TestReleaseByADamagedRecord takes nothing, says which file it is, and keeps it.
func TestReleaseByADamagedRecord(t *testing.T) {
	r := settings(t, "1024 65535", "61000-65535\n")
	for _, text := range []string{"61000-x", "61000-65535\nbeside x", "\n"} {
		if err := os.WriteFile(r.Record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Release(); err == nil || !strings.Contains(err.Error(), r.Record) || r.read(t) != "61000-65535\n" {
			t.Errorf("%q: %v, reserved %q", text, err, r.read(t))
		}
		if b, err := os.ReadFile(r.Record); err != nil || string(b) != text {
			t.Errorf("the record is %q, %v; want %q", b, err, text)
		}
	}
}

// TestReserveInTheKernel: the settings of a namespace, which merges ranges that touch, and
// takes an empty line for none.
func TestReserveInTheKernel(t *testing.T) {
	space := netdevtest.New(t)
	r := Reservation{Sys: "/proc/sys/net/ipv4", Record: filepath.Join(t.TempDir(), "record")}
	for _, others := range []string{"\n", "8080,60000-60999\n"} {
		space.Do(func() {
			if err := errors.Join(os.WriteFile(r.given(), []byte("1024 65535"), 0), os.WriteFile(r.reserved(), []byte(others), 0)); err != nil {
				t.Errorf("setting up: %v", err)
				return
			}
			wrote, err := r.Reserve(Span{61000, 65535})
			all, _ := spansIn(r.reserved())
			if err != nil || !wrote || len(all) == 0 || all[len(all)-1].Last != 65535 || all[len(all)-1].First > 61000 {
				t.Errorf("beside %q: wrote %v, %v; reserved %v", others, wrote, err, all)
			}
			gone, err := r.Release()
			b, _ := os.ReadFile(r.reserved())
			if err != nil || len(gone) != 1 || gone[0] != (Span{61000, 65535}) || string(b) != others {
				t.Errorf("beside %q: took %v, %v; left %q", others, gone, err, b)
			}
		})
	}
}

// FuzzSpans: what can be read is written so that it reads the same.
func FuzzSpans(f *testing.F) {
	f.Add("8080,9000-9010\n")
	f.Add("65535-0,0-65535, 1\t2")
	f.Fuzz(func(t *testing.T, text string) {
		read, err := spans(text)
		if err != nil {
			return
		}
		var p, q ports
		p.set(true, read...)
		again, err := spans(p.text())
		if err != nil {
			t.Fatal(err)
		}
		q.set(true, again...)
		if p != q {
			t.Errorf("%q is %v, written %v", text, read, again)
		}
	})
}
