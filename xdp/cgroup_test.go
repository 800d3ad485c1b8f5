package xdp

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/bench/lab/testenv"
)

// confined marks the copy of the test process that sees a part of the hierarchy alone.
const confined = "LACE_XDP_TEST_CONFINED"

// TestCgroupRootOutOfReach: a container's own part of the hierarchy is not taken for the
// root. The error says what to do, and nothing else of the objects suffers.
func TestCgroupRootOutOfReach(t *testing.T) {
	testenv.Privileged(t)
	if os.Getenv(confined) != "" {
		inContainer(t)
		return
	}
	root, err := openCgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := ReachCgroupRoot(); err != nil {
		t.Errorf("ReachCgroupRoot: %v, where the root was found", err)
	}
	name := "lace-test-" + strconv.Itoa(os.Getpid())
	if err := unix.Mkdirat(int(root.Fd()), name, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unlinkat(int(root.Fd()), name, unix.AT_REMOVEDIR); err != nil {
			t.Error(err)
		}
	}()
	part, err := unix.Openat(int(root.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(part)
	c := exec.Command("/proc/self/exe", "-test.run=^TestCgroupRootOutOfReach$", "-test.v")
	c.Env = append(os.Environ(), confined+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: part, Cloneflags: unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL,
	}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// inContainer runs where only a part of the hierarchy is mounted, as in most containers.
func inContainer(t *testing.T) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	mounts, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer mounts.Close()
	for _, path := range cgroupMounts(mounts) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	own := t.TempDir()
	if err := unix.Mount("cgroup2", own, "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(own, unix.MNT_DETACH)
	if _, err := os.Stat(filepath.Join(own, "cgroup.procs")); err != nil {
		t.Fatal(err)
	}
	if _, err := openCgroupRoot(); !errors.Is(err, ErrNoCgroup) {
		t.Errorf("openCgroupRoot: %v, want ErrNoCgroup", err)
	}
	if err := ReachCgroupRoot(); !errors.Is(err, ErrNoCgroup) {
		t.Errorf("ReachCgroupRoot: %v, want ErrNoCgroup", err)
	}
	o := open(t, mountBPF(t))
	if err := o.SyncAliases(aliasesOfTest()); err != nil {
		t.Error(err)
	}
	for range 2 { // it is tried again
		if err := o.AttachSockets(); !errors.Is(err, ErrNoCgroup) || !strings.Contains(err.Error(), "mount -t cgroup2") {
			t.Errorf("AttachSockets: %v, want ErrNoCgroup and what to do", err)
		}
	}
	if err := errors.Join(o.SyncPorts(nil), o.TrimAliases(nil), o.SyncAliases(nil), o.Reread()); err != nil {
		t.Error(err)
	}
}
