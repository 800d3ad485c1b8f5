package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lace-cni.io/lace/slowpath/netdev/netdevtest"
)

// TestCleanupTakesBackSourcePorts: of the ports that the node's processes are not given, those
// that Lace has added, and no other.
func TestCleanupTakesBackSourcePorts(t *testing.T) {
	const given, reserved = "/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/ip_local_reserved_ports"
	node := netdevtest.New(t)
	c := config(t, io.Discard)
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Stack = node.Stack()
	c.Settings.SourcePortFirst, c.Settings.SourcePortLast = 61000, 65535
	w := newPortWatch(&c)
	node.Do(func() {
		if err := errors.Join(os.WriteFile(given, []byte("1024 65535"), 0), os.WriteFile(reserved, []byte("8080,62000-62010\n"), 0)); err != nil {
			t.Errorf("setting up: %v", err)
			return
		}
		if got := w.look(nil); len(got) != 0 {
			t.Errorf("Problems %v", got)
		}
		if b, err := os.ReadFile(reserved); string(b) != "8080,61000-65535\n" {
			t.Errorf("reserved %q, %v", b, err)
		}
		removed, err := Cleanup(c)
		if err != nil || !strings.Contains(strings.Join(removed, "; "), "ports, from net.ipv4.ip_local_reserved_ports: 61000-61999, 62011-65535; ") {
			t.Errorf("removed %q, %v", removed, err)
		}
		if b, err := os.ReadFile(reserved); string(b) != "8080,62000-62010\n" {
			t.Errorf("left %q, %v", b, err)
		}
	})
	if left, _ := filepath.Glob(c.StateDir + "*"); len(left) > 0 {
		t.Errorf("files %q are left", left)
	}
}
