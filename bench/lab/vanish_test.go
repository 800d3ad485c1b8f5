package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/lab/testenv"
)

const victimVariable = "LACE_LAB_VICTIM"

// victim is the life of a process whose only purpose is to be killed: it starts a lab,
// says so, and waits.
func victim() {
	if os.Getenv(victimVariable) == "" {
		return
	}
	os.Unsetenv(victimVariable)
	l, err := lab.Start(context.Background(), lab.Topology{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	n1 := l.Node("n1")
	if err := n1.StartFastpath(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(n1.StatePath("fastpath.json")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			fmt.Println("the fast path does not come up")
			os.Exit(1)
		}
	}
	pids := []string{"up"}
	for _, h := range append(l.Pods(), l.Outside(), n1.Host, l.Node("n2").Host) {
		pids = append(pids, strconv.Itoa(h.PID()))
	}
	fmt.Println(strings.Join(pids, " "))
	fmt.Println(n1.StatePath("bpf/lace"))
	select {}
}

// remains is what of labs the host could see: its own links and mounts.
func remains(t *testing.T) map[string]bool {
	t.Helper()
	links, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, l := range links {
		out["link "+l.Name()] = true
	}
	for line := range strings.Lines(string(mounts)) {
		out["mount "+strings.Fields(line)[4]] = true
	}
	return out
}

// added is what is in after and not in before.
func added(before, after map[string]bool) (out []string) {
	for what := range after {
		if !before[what] {
			out = append(out, what)
		}
	}
	return out
}

// pinnedMaps are the ids of the BPF maps pinned under a folder.
func pinnedMaps(t *testing.T, dir string) (ids []ebpf.MapID) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "maps", "*"))
	for _, p := range paths {
		m, err := ebpf.LoadPinnedMap(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		about, err := m.Info()
		m.Close()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := about.ID()
		ids = append(ids, id)
	}
	return ids
}

// A lab whose owner is killed with SIGKILL, with a fast path in it, leaves no process, link,
// mount, namespace or BPF map.
func TestEverythingVanishesWithItsOwner(t *testing.T) {
	testenv.Privileged(t)
	before := remains(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), victimVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	said := bufio.NewReader(out)
	line, _ := said.ReadString('\n')
	pids := strings.Fields(line)
	if len(pids) != 9 || pids[0] != "up" {
		t.Fatalf("the lab to be killed says %q, want up and 8 process ids", line)
	}
	if more := added(before, remains(t)); len(more) > 0 {
		t.Errorf("a running lab shows on the host: %v", more)
	}
	nets := map[string]bool{}
	for _, pid := range pids[1:] {
		ns, err := os.Readlink(filepath.Join("/proc", pid, "ns", "net"))
		if err != nil || nets[ns] {
			t.Errorf("process %s has no network namespace of its own: %q, %v", pid, ns, err)
		}
		nets[ns] = true
	}
	pins, _ := said.ReadString('\n')
	maps := pinnedMaps(t, strings.TrimSpace(pins))
	if len(maps) == 0 {
		t.Errorf("the fast path has pinned nothing in %q", pins)
	}
	cmd.Process.Kill()
	within(t, 5*time.Second, "processes of the killed lab", func() (left []string) {
		for _, pid := range pids[1:] {
			if exists(pid) {
				left = append(left, pid)
			}
		}
		return left
	})
	within(t, 5*time.Second, "processes in namespaces of the killed lab", func() (left []string) {
		all, _ := filepath.Glob("/proc/[0-9]*/ns/net")
		for _, p := range all {
			if ns, err := os.Readlink(p); err == nil && nets[ns] {
				left = append(left, p)
			}
		}
		return left
	})
	within(t, 5*time.Second, "BPF maps of the killed lab", func() (left []string) {
		for _, id := range maps {
			if m, err := ebpf.NewMapFromID(id); err == nil {
				left = append(left, m.String())
				m.Close()
			}
		}
		return left
	})
	within(t, 5*time.Second, "links and mounts of the killed lab", func() []string {
		return added(before, remains(t))
	})
}

// within waits until nothing is left.
func within(t *testing.T, patience time.Duration, what string, left func() []string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		l := left()
		if len(l) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, %s later: %v", what, patience, l)
		}
		time.Sleep(time.Millisecond)
	}
}

// exists reports whether a process is there and not just a corpse that its new parent has
// not collected yet.
func exists(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}

// Close ends the processes before it returns, and the folder goes unless it is to be kept.
func TestCloseLeavesNothing(t *testing.T) {
	testenv.Privileged(t)
	for _, keep := range []bool{false, true} {
		l, err := lab.Start(t.Context(), lab.Topology{Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		pid := strconv.Itoa(l.Node("n1").PID())
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if exists(pid) {
			t.Errorf("keep=%v: the process of n1 is still there", keep)
		}
		_, err = os.Stat(l.Folder())
		if kept := err == nil; kept != keep {
			t.Errorf("keep=%v: the folder exists: %v", keep, kept)
		}
		os.RemoveAll(l.Folder())
	}
}
