package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netns"

	"lace-cni.io/lace/bench/lab"
)

// counted is among the settings, and changes by itself.
const counted = "/proc/sys/net/netfilter/nf_conntrack_count"

// TestSettingsOfTheNode: Lace changes no setting of a node's network, those of its connection
// tracking included, which kube-proxy sets: only its own devices have some.
func TestSettingsOfTheNode(t *testing.T) {
	c := emptyCluster(t, lab.Topology{Delivery: "stack"})
	n := c.Node("n1")
	before := sysctls(t, n)
	if len(before) < 300 || before["/proc/sys/net/ipv4/ip_forward"] != "1\n" {
		t.Fatalf("%d settings can be read; the test would prove nothing", len(before))
	}
	c.populate(t)
	own := 0
	for path, value := range sysctls(t, n) {
		was, known := before[path]
		switch device := filepath.Base(filepath.Dir(path)); {
		case known && was != value:
			t.Errorf("%s was %q, and is %q", path, was, value)
		case !known && device != "lace0":
			t.Errorf("%s is new", path)
		case !known:
			own++
		}
	}
	if own == 0 {
		t.Error("lace0 has no settings: was the node served?")
	}
}

// sysctls are the settings that can be read in a node's network namespace, by path.
func sysctls(t *testing.T, n *lab.Node) map[string]string {
	t.Helper()
	out := map[string]string{}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends inside
		done <- func() error {
			inside, err := netns.GetFromPid(n.PID())
			if err != nil {
				return err
			}
			defer inside.Close()
			if err := netns.Set(inside); err != nil {
				return err
			}
			return filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || path == counted {
					return nil // a device that goes takes its settings away
				}
				if b, err := os.ReadFile(path); err == nil {
					out[path] = string(b)
				}
				return nil
			})
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if slices.Contains([]string{"", "\n"}, out["/proc/sys/net/ipv4/ip_local_port_range"]) {
		t.Fatal("the port range of the node cannot be read")
	}
	return out
}
