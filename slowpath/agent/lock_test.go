package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASecondHolderIsRefusedAndNamesTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.lock")
	first, err := lock(path, "lace-agent")
	if err != nil {
		t.Fatal(err)
	}
	_, err = lock(path, "lace-agent")
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("second: %v, want ErrInUse, who has it, and what to do", err)
	}
	first.Close()
	again, err := lock(path, "lace-agent")
	if err != nil {
		t.Fatalf("after the first let go: %v", err)
	}
	again.Close()
}

func TestALockIsNoLink(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "precious")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "agent.lock")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, err := lock(link, "lace-agent"); err == nil {
		t.Error("a link was taken for a lock file")
	}
	if b, _ := os.ReadFile(target); string(b) != "precious" {
		t.Errorf("the file behind the link holds %q", b)
	}
}

func TestStateDirectoryIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := openState(dir); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v), want 0700", st.Mode(), err)
	}
}
