package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRead: a regular file is read whole up to the bound, and everything else is refused without
// being read or waited for.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(write("right", "12345678"), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want, refused string }{
		{"as long as may be", filepath.Join(dir, "right"), "12345678", ""},
		{"through a link", link, "12345678", ""},
		{"an empty one", write("empty", ""), "", ""},
		{"a byte more", write("long", "123456789"), "", "it has more than 8 bytes"},
		{"a device has no end", "/dev/zero", "", "it is no regular file"},
		{"a pipe that nobody writes", pipe, "", "it is no regular file"},
		{"a folder", dir, "", "it is no regular file"},
		{"what the kernel makes up", "/proc/self/status", "", "it is a file of the kernel's (proc or sysfs)"},
	} {
		b, err := Read(c.path, 8)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if string(b) != c.want || said != c.refused {
			t.Errorf("%s: %q, refused with %q, want %q and %q", c.name, b, said, c.want, c.refused)
		}
	}
	absent := filepath.Join(dir, "absent")
	if _, err := Read(absent, 8); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), absent) {
		t.Errorf("a file that is not there: %v", err)
	}
}
