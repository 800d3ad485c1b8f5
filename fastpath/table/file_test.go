package table_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/table"
)

func TestSnapshotOfBeforeStaysWhenTheFileIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	c := small()
	open := func() *table.Snapshot {
		t.Helper()
		if err := table.WriteFile(path, encode(t, c)); err != nil {
			t.Fatal(err)
		}
		s, err := table.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	old := open()
	c.Generation = 8
	next := open()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if old.Generation() != 7 || next.Generation() != 8 {
		t.Errorf("generations %d and %d, want 7 and 8", old.Generation(), next.Generation())
	}
	for _, s := range []*table.Snapshot{old, next} {
		if err := walk(s); err != nil {
			t.Error(err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	if err := os.WriteFile(path+".new", []byte("left behind by a crash, longer than what follows"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteFile(path, []byte("short")); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode() != 0o600 {
		t.Errorf("mode %v, want -rw-------", st.Mode())
	}
	if b, _ := os.ReadFile(path); string(b) != "short" {
		t.Errorf("file holds %q", b)
	}
	names, _ := os.ReadDir(dir)
	if len(names) != 1 {
		t.Errorf("%d files in the directory, want the snapshot alone", len(names))
	}
}

func TestWriteFileErrorsLeaveTheFileOfBefore(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing", "snapshot")
	if err := table.WriteFile(missing, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("directory missing: %v", err)
	}
	taken := filepath.Join(dir, "taken") // a directory cannot be renamed over
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteFile(taken, []byte("x")); err == nil || !strings.Contains(err.Error(), "stays") {
		t.Errorf("path is a directory: %v", err)
	}
	if _, err := os.Stat(taken + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half-done file was left: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "victim"), link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteFile(link, []byte("x")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("symbolic link in the way: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	good := encode(t, small())
	later := append([]byte(nil), good...)
	later[table.OffsetLayout]++
	for _, c := range []struct {
		name string
		make func(path string) error
		is   error
		want string
	}{
		{"absent", func(string) error { return nil }, fs.ErrNotExist, "no such file"},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o600) }, table.ErrDamaged, "remove the file, the agent writes a new one"},
		{"cut", func(p string) error { return os.WriteFile(p, good[:len(good)/2], 0o600) }, table.ErrDamaged, "its header says"},
		{"foreign", func(p string) error { return os.WriteFile(p, make([]byte, 4096), 0o600) }, table.ErrDamaged, "does not begin with"},
		{"later-layout", func(p string) error { return os.WriteFile(p, later, 0o600) }, table.ErrLayout, "layout 3, this program takes 2"},
		{"directory", func(p string) error { return os.Mkdir(p, 0o700) }, table.ErrDamaged, "not a regular file"},
		{"pipe", func(p string) error { return unix.Mkfifo(p, 0o600) }, table.ErrDamaged, "not a regular file"},
		{"huge", func(p string) error {
			if err := os.WriteFile(p, good, 0o600); err != nil {
				return err
			}
			return os.Truncate(p, table.MaxSize+1)
		}, table.ErrDamaged, "1073741825 bytes"},
	} {
		path := filepath.Join(dir, c.name)
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		s, err := table.Open(path)
		if s != nil || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %v naming the path, with %q", c.name, err, c.is, c.want)
		}
	}
}

// What was checked cannot be changed: neither by who overwrites or cuts the file in place,
// nor by who holds the snapshot.
func TestSnapshotIsACopyThatNobodyCanChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	b := encode(t, small())
	if err := table.WriteFile(path, b); err != nil {
		t.Fatal(err)
	}
	s, err := table.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(path, bytes.Repeat([]byte{0xff}, len(b)), 0o600) }, // same file, in place
		func() error { return os.Truncate(path, 0) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := walk(s); err != nil {
			t.Errorf("after the file was changed in place: %v", err)
		}
	}
	if access := mapped(t, uintptr(unsafe.Pointer(s.Settings()))); access != "r--p" {
		t.Errorf("the snapshot lies in memory that is %q, want r--p", access)
	}
	for range 2 { // a second Close does nothing
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// mapped says how the memory at an address may be accessed, "" when nothing is there.
func mapped(t *testing.T, at uintptr) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); err == nil && from <= at && at < to {
			return access
		}
	}
	return ""
}
