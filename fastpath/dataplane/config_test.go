package dataplane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	cases := []struct {
		sentence string
		config   Config
		says     string // "" for good
	}{
		{"nothing said means the defaults", Config{}, ""},
		{"the largest trunk", Config{TrunkMTU: 3506}, ""},
		{"too many workers", Config{Workers: 65}, "workers: 65 is outside 1 to 64"},
		{"a negative number of workers", Config{Workers: -1}, "workers: -1"},
		{"a flow table too small for a bucket", Config{FlowSlots: 8}, "flow slots: 8"},
		{"a trunk too narrow for IPv6", Config{TrunkMTU: 1279}, "trunk MTU: 1279 is outside 1280 to 3506"},
		{"a trunk too wide for XDP", Config{TrunkMTU: 3507}, "trunk MTU: 3507"},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			err := c.config.complete()
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				if c.config.StateDir != DefaultStateDir || c.config.Workers != DefaultWorkers || c.config.Log == nil {
					t.Errorf("defaults are missing: %+v", c.config)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
		})
	}
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	held, err := lockState(t.Context(), &Config{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the state directory has mode %v, %v; want 0700", st.Mode().Perm(), err)
	}
	if _, err := lockState(t.Context(), &Config{StateDir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second lock gives %v, want ErrInUse", err)
	}
	held.Close()
	again, err := lockState(t.Context(), &Config{StateDir: dir})
	if err != nil {
		t.Fatalf("after the first one was released: %v", err)
	}
	again.Close()
}

func TestLockThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "state")
	if err := os.Mkdir(link, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(link, lockFile)); err != nil {
		t.Fatal(err)
	}
	for sentence, path := range map[string]string{"a file in place of the directory": file, "a symbolic link in place of the lock": link} {
		if held, err := lockState(t.Context(), &Config{StateDir: path}); err == nil {
			held.Close()
			t.Errorf("%s: no error", sentence)
		}
	}
}
