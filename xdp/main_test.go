package xdp

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

// inside marks the copy of the test process that runs in namespaces of its own.
const inside = "LACE_XDP_TEST_INSIDE"

// TestMain runs the tests in a network and a mount namespace of their own: they attach to
// devices called lace0 and mount file systems, and nothing of it may reach the machine.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" || len(testenv.Missing()) > 0 {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // the child dies with this thread
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Args[0] = os.Args[0]
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	err := c.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests in namespaces of their own:", err)
		os.Exit(1)
	}
}

// mountBPF gives the test a BPF file system of its own.
func mountBPF(t testing.TB) string {
	t.Helper()
	testenv.Privileged(t)
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatalf("mounting a BPF file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// open opens the objects on a BPF file system and closes them with the test.
func open(t testing.TB, bpffs string) *Objects {
	t.Helper()
	o, err := Open(Config{BPFFS: bpffs, FlowSlots: 1024, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}
