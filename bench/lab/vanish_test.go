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
	pids := []string{"up"}
	for _, h := range append(l.Pods(), l.Outside(), l.Node("n1").Host, l.Node("n2").Host) {
		pids = append(pids, strconv.Itoa(h.PID()))
	}
	fmt.Println(strings.Join(pids, " "))
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

// A lab whose owner is killed with SIGKILL leaves no process, link, mount or namespace.
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
	line, _ := bufio.NewReader(out).ReadString('\n')
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
