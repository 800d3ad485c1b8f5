package statedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lace-cni.io/lace/bench/lab/testenv"
)

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode().Perm()
}

// TestMake: a missing one is for this user alone; one that is there keeps its mode, and is
// refused when others could put files into it.
func TestMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "lace")
	if err := Make(path); err != nil || mode(t, path) != 0o700 {
		t.Errorf("made with mode %o: %v", mode(t, path), err)
	}
	for _, c := range []struct {
		mode os.FileMode
		says string
	}{
		{0o700, ""}, {0o755, ""}, {0o750, ""}, {0o777, "mode 0777"}, {0o775, "mode 0775"}, {0o1777, "mode 0777"},
	} {
		if err := os.Chmod(path, c.mode.Perm()|stickyOf(c.mode)); err != nil {
			t.Fatal(err)
		}
		err := Make(path)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("mode %o: %v, want %q", c.mode, err, c.says)
		}
		if got := mode(t, path); got != c.mode.Perm() {
			t.Errorf("mode %o has become %o", c.mode.Perm(), got)
		}
	}
}

func stickyOf(m os.FileMode) os.FileMode {
	if m&0o1000 != 0 {
		return os.ModeSticky
	}
	return 0
}

func TestMakeSomebodyElses(t *testing.T) {
	testenv.Privileged(t)
	path := t.TempDir()
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := Make(path); err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("somebody else's directory: %v", err)
	}
}

func TestMakeInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lace")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Make(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file in the way: %v", err)
	}
}
