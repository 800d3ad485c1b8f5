package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyRegularFilesAreRead: what has no end, no beginning or no contents is refused at
// once, and a file that is too long to be a record after what one may have.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, long := filepath.Join(dir, "pipe"), filepath.Join(dir, "long")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, MaxFile+1); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"/dev/zero": "no regular file", pipe: "no regular file", dir: "no regular file",
		long: "more than", filepath.Join(dir, "none"): "no such file",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want a message with the path and %q", path, err, says)
		}
	}
}

// TestWritableIsKnownBefore: what cannot be written is refused, and what can is left as it
// was.
func TestWritableIsKnownBefore(t *testing.T) {
	dir := t.TempDir()
	kept, fresh := filepath.Join(dir, "kept.json"), filepath.Join(dir, "fresh.json")
	link, device := filepath.Join(dir, "link.json"), filepath.Join(dir, "device.json")
	for _, err := range []error{os.WriteFile(kept, []byte("a run"), 0o600), os.Symlink(kept, link), os.Symlink("/dev/zero", device)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{kept, fresh, link} {
		if err := Writable(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if b, err := os.ReadFile(kept); err != nil || string(b) != "a run" {
		t.Errorf("the file that was there holds %q now (%v)", b, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("%v, %v: want the file and the two links alone", files, err)
	}
	for _, path := range []string{device, "/dev/null", filepath.Join(dir, "none", "run.json"), dir, filepath.Join(kept, "run.json")} {
		if err := Writable(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want a message with the path", path, err)
		}
	}
}
