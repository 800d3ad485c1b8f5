package dir

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestTheLogSaysThatTheFolderIsNotThere: once, and once more when it is.
func TestTheLogSaysThatTheFolderIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifests")
	var log bytes.Buffer
	r := run{
		folder: newFolder(path, 0), sink: &record{changed: make(chan struct{}, 1)}, places: new(atomic.Pointer[Places]),
		log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	now := time.Now()
	r.pass(now)
	r.pass(now.Add(time.Second))
	if got := log.String(); strings.Count(got, "cannot be read") != 1 || !strings.Contains(got, path) {
		t.Errorf("a folder that is not there, looked at twice: the log says %q, want it once", got)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	r.pass(now.Add(2 * time.Second))
	r.pass(now.Add(3 * time.Second))
	if got := log.String(); strings.Count(got, "can be read now") != 1 {
		t.Errorf("a folder that appeared: the log says %q, want it once", got)
	}
}
