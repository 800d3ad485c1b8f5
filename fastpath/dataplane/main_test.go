package dataplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

const (
	// inside marks the copy of the test process that runs in namespaces of its own.
	inside = "LACE_DATAPLANE_TEST_INSIDE"
	// asFastpath marks a copy that is a fast path; its value is the Config.
	asFastpath = "LACE_DATAPLANE_TEST_FASTPATH"
)

// TestMain runs the tests in a network and a mount namespace of their own, so that
// nothing of them reaches the machine and all of it goes when they end.
func TestMain(m *testing.M) {
	if c := os.Getenv(asFastpath); c != "" {
		os.Exit(beFastpath(c))
	}
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

// beFastpath is what lace-fastpath is.
func beFastpath(config string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var c Config
	err := json.Unmarshal([]byte(config), &c)
	if err == nil {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = Run(ctx, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fastpath:", err)
		return 1
	}
	return 0
}
