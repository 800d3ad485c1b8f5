package preflight

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

// TestHolderIn reads who holds a lock out of the kernel's list.
func TestHolderIn(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 11 fd:01:1048 0 EOF
2: FLOCK  ADVISORY  WRITE 12 fd:01:2048 0 EOF
3: FLOCK  ADVISORY  WRITE 3172 fd:01:1048 0 EOF
3: -> FLOCK  ADVISORY  WRITE 3175 fd:01:1048 0 EOF
4: FLOCK  ADVISORY  WRITE -1 fd:01:4048 0 EOF
5: FLOCK
`
	for file, want := range map[string]int{"fd:01:1048": 3172, "fd:01:2048": 12, "fd:01:4048": 0, "fd:02:1048": 0} {
		if got := holderIn(locks, file); got != want {
			t.Errorf("%s is held by %d, want %d", file, got, want)
		}
	}
}

// A fast path in this network namespace is not apart; one in another is.
func TestApart(t *testing.T) {
	if dir := os.Getenv("LACE_TEST_HOLD"); dir != "" {
		hold(t, dir)
		return
	}
	testenv.Privileged(t)
	for _, c := range []struct {
		sentence string
		flags    uintptr
		apart    bool
	}{
		{"the same network", 0, false},
		{"another network, and other process numbers", unix.CLONE_NEWNET | unix.CLONE_NEWPID, true},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestApart$")
			cmd.Env = append(os.Environ(), "LACE_TEST_HOLD="+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: c.flags, Pdeathsig: unix.SIGKILL}
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { in.Close(); cmd.Wait() }()
			if b := make([]byte, 8); !readsHeld(out, b) {
				t.Fatal("the lock was not taken")
			}
			f := Look(Places{StateDir: dir, BPFFS: dir})
			want := 0
			if c.apart {
				want = cmd.Process.Pid
			}
			if !f.FastpathAlive || f.FastpathApart != want {
				t.Errorf("alive %v, apart %d; want %d", f.FastpathAlive, f.FastpathApart, want)
			}
		})
	}
}

func readsHeld(r interface{ Read([]byte) (int, error) }, b []byte) bool {
	n, _ := r.Read(b)
	return strings.HasPrefix(string(b[:n]), "held")
}

// hold takes the lock of a fast path, says so, and keeps it until its input ends.
func hold(t *testing.T, dir string) {
	f, err := os.Create(filepath.Join(dir, "fastpath.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("held\n")
	os.Stdin.Read(make([]byte, 1))
	f.Close()
}

// What is said of a fast path in another network warns that the lines about devices are not
// about its own, and how to ask there.
func TestFastpathApartIsAWarning(t *testing.T) {
	f := Facts{FastpathAlive: true, Fastpath: &Fastpath{PID: 37}}
	if got := judgeFastpath(f); got.Verdict != OK {
		t.Errorf("%+v", got)
	}
	f.FastpathApart = 4711
	if got := judgeFastpath(f); got.Verdict != Warn || !strings.Contains(got.Found, "another network namespace") || !strings.Contains(got.Do, "nsenter --net --target 4711 lace check") {
		t.Errorf("%+v", got)
	}
}
