package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

func TestASecondHolderIsRefusedAndNamesTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.lock")
	first, err := lock(path, "lace-agent")
	if err != nil {
		t.Fatal(err)
	}
	_, err = lock(path, "lace-agent")
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) || !strings.HasSuffix(err.Error(), "stop that one") {
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

// TestCleanupSparesAFastPathElsewhere: one with another state directory is found by what it
// holds, the network namespace or the directory of its pins, and nothing is removed.
func TestCleanupSparesAFastPathElsewhere(t *testing.T) {
	node := netdevtest.New(t)
	node.Veth("lace0", netdevtest.New(t), "lace1")
	c := config(t, io.Discard)
	c.Stack, c.StateDir = node.Stack(), filepath.Join(t.TempDir(), "none")
	pins := filepath.Join(c.BPFFS, "lace")
	if err := os.MkdirAll(pins, 0o700); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{"network namespace": "/proc/thread-self/ns/net", "BPF file system": pins} {
		node.Do(func() {
			held, err := os.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer held.Close()
			if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				t.Error(err)
			}
			removed, err := Cleanup(c)
			if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), what) || len(removed) > 0 {
				t.Errorf("%s: %v, removed %q; want ErrInUse and what is in use", what, err, removed)
			}
		})
	}
	node.Do(func() {
		if removed, err := Cleanup(c); err != nil || len(removed) == 0 {
			t.Errorf("when nobody holds anything: removed %q, %v", removed, err)
		}
	})
}
