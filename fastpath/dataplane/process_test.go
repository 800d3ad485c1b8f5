package dataplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/fastpath/worker"
)

// fastpath is lace-fastpath in a process of its own, in the test's namespaces.
type fastpath struct {
	t      testing.TB
	config Config
	cmd    *exec.Cmd
	ended  chan error // what became of the process
	log    *transcript
}

// transcript is what a process has said so far.
type transcript struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// newFastpath prepares a state directory and a BPF file system; nothing runs yet.
func newFastpath(t testing.TB, workers int) *fastpath {
	t.Helper()
	f := &fastpath{t: t, config: Config{StateDir: filepath.Join(t.TempDir(), "state"), BPFFS: t.TempDir(), Workers: workers, FlowSlots: 1 << 14}}
	if err := unix.Mount("bpf", f.config.BPFFS, "bpf", 0, ""); err != nil {
		t.Fatalf("mounting a BPF file system: %v", err)
	}
	if err := os.Mkdir(f.config.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.kill()
		if t.Failed() && f.log != nil {
			t.Logf("what the fast path said last:\n%s\nwhat it counted: %s", f.log, f.counted())
		}
		if _, err := Cleanup(f.config); err != nil {
			t.Errorf("Cleanup: %v", err)
		}
		if err := unix.Unmount(f.config.BPFFS, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return f
}

// start begins the process and waits until it serves.
func (f *fastpath) start() {
	f.t.Helper()
	b, err := json.Marshal(struct {
		StateDir, BPFFS    string
		Workers, FlowSlots int
	}{f.config.StateDir, f.config.BPFFS, f.config.Workers, f.config.FlowSlots})
	if err != nil {
		f.t.Fatal(err)
	}
	f.log = &transcript{}
	f.cmd = exec.Command("/proc/self/exe")
	f.cmd.Env = append(os.Environ(), asFastpath+"="+string(b))
	f.cmd.Stderr = f.log
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	started := make(chan error)
	f.ended = make(chan error, 1)
	go func() {
		// The process dies with the thread that started it, which must not be one that a
		// pod's socket was made on and that ends.
		runtime.LockOSThread()
		err := f.cmd.Start()
		started <- err
		if err == nil {
			f.ended <- f.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		f.t.Fatal(err)
	}
	f.says("serving")
}

// says waits for a word in the log.
func (f *fastpath) says(word string) {
	f.t.Helper()
	f.eventually("the log says "+word, func() bool { return strings.Contains(f.log.String(), word) })
}

// kill ends the process at once.
func (f *fastpath) kill() {
	if f.cmd == nil {
		return
	}
	_ = f.cmd.Process.Kill()
	<-f.ended
	f.cmd = nil
}

// stop asks the process to end and checks that it ends well.
func (f *fastpath) stop() {
	f.t.Helper()
	if err := f.cmd.Process.Signal(unix.SIGTERM); err != nil {
		f.t.Fatal(err)
	}
	if err := <-f.ended; err != nil {
		f.t.Errorf("asked to end, the fast path ends with %v:\n%s", err, f.log)
	}
	f.cmd = nil
}

// publish writes tables as the agent does.
func (f *fastpath) publish(c *table.Contents) {
	f.t.Helper()
	b, err := table.Encode(nil, c)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := table.WriteFile(f.config.path(snapshotFile), b); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fastpath) totals() counter.Totals {
	f.t.Helper()
	r, err := counter.Open(f.config.path(counterFile))
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	return r.Totals()
}

// settled is totals with everything in it that was counted before the call.
func (f *fastpath) settled() counter.Totals {
	f.t.Helper()
	since := worker.Now()
	f.eventually("counts are written", func() bool { return slices.Min(f.totals().Beats) > since })
	return f.totals()
}

// counted lists what is not zero in the counter file.
func (f *fastpath) counted() string {
	r, err := counter.Open(f.config.path(counterFile))
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	c := r.Totals()
	var b strings.Builder
	for why, n := range c.Reasons {
		if n.Packets != 0 {
			fmt.Fprintf(&b, "%s %d, ", reason.Reason(why), n.Packets)
		}
	}
	for e, n := range c.Events {
		fmt.Fprintf(&b, "%s %d, ", counter.Event(e), n)
	}
	return b.String()
}

// uses waits until a generation is in use.
func (f *fastpath) uses(generation uint64) {
	f.t.Helper()
	f.eventually("a new generation is in use", func() bool { return f.totals().Gauges[counter.Generation] == generation })
}

func (f *fastpath) eventually(what string, ok func() bool) {
	f.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			f.t.Fatalf("not within a minute: %s\n%s", what, f.log)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
