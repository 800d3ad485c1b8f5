package dir

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hanging makes the files whose names begin with "slow" hang until the returned function
// is called, which waits for nobody.
func (x *tester) hanging() (release func()) {
	x.folder.patience.wait = 5 * time.Millisecond
	gate := make(chan struct{})
	x.folder.open = func(path string, most int64) ([]byte, version, error) {
		if strings.HasPrefix(filepath.Base(path), "slow") {
			<-gate
		}
		return read(path, most)
	}
	return func() { close(gate) }
}

// eventually looks until there is something to deliver.
func (x *tester) eventually(what, want string) {
	x.t.Helper()
	got := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got = x.look(0); got == want {
			return
		}
	}
	x.t.Errorf("%s: got %q, want %q", what, got, want)
}

// TestFileThatHangs is a Problem of its own: the others go on, and it is read when it
// answers. It is asked once, however often the folder is looked at.
func TestFileThatHangs(t *testing.T) {
	x := newTester(t)
	release := x.hanging()
	x.write("slow.yaml", node("n1"))
	x.write("a.yaml", node("n2"))
	x.want("one hangs", 0, "+n2, !slow.yaml Unreadable")
	x.write("a.yaml", labelled("n2", "new"))
	x.want("the other changes", time.Second, "+n2, !slow.yaml Unreadable")
	if n := len(x.folder.patience.pending); n != 1 {
		t.Errorf("%d questions are open after two looks, want 1", n)
	}
	release()
	x.eventually("it answers", "+n1")
}

// TestMoreFilesHangThanAreWaitedFor: the number is bounded, and all are read in the end.
func TestMoreFilesHangThanAreWaitedFor(t *testing.T) {
	x := newTester(t)
	x.folder.patience.most = 3
	release := x.hanging()
	for i := range 5 {
		x.write(fmt.Sprintf("slow%d.yaml", i), node(fmt.Sprint("n", i)))
	}
	x.look(0)
	if n := len(x.folder.patience.pending); n != 3 {
		t.Errorf("%d questions are open, want 3", n)
	}
	if m := x.folder.problems[4].Message; !strings.Contains(m, "3 other files do not answer") {
		t.Errorf("the last file says %q", m)
	}
	release()
	for end := time.Now().Add(10 * time.Second); len(x.folder.delivered) < 5 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		x.look(time.Second)
	}
	if n := len(x.folder.delivered); n != 5 {
		t.Errorf("%d objects in the end, want 5", n)
	}
}

// TestAnswerThatNobodyWantsAnyMore leaves room for others.
func TestAnswerThatNobodyWantsAnyMore(t *testing.T) {
	x := newTester(t)
	release := x.hanging()
	x.write("slow.yaml", node("n1"))
	x.want("it hangs", 0, "!slow.yaml Unreadable")
	x.remove("slow.yaml")
	release()
	for end := time.Now().Add(10 * time.Second); len(x.folder.patience.pending) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		x.look(time.Second)
	}
	if n := len(x.folder.patience.pending); n != 0 {
		t.Errorf("%d questions are open, want none", n)
	}
}

// TestFileOfTheKernel: what waits for events, or makes something up, is no document.
func TestFileOfTheKernel(t *testing.T) {
	x := newTester(t)
	for i, target := range []string{"/proc/self/status", "/proc/kmsg", "/sys/kernel/notes"} {
		if err := os.Symlink(target, filepath.Join(x.dir, fmt.Sprintf("k%d.yaml", i))); err != nil {
			t.Fatal(err)
		}
	}
	x.write("a.yaml", node("n1"))
	x.want("links into /proc and /sys", time.Minute, "+n1, !k0.yaml Unreadable, !k1.yaml Unreadable, !k2.yaml Unreadable")
	if m := x.folder.problems[0].Message; !strings.Contains(m, "file of the kernel's") {
		t.Errorf("the first says %q", m)
	}
}

// TestStopWhileFilesHang: nobody waits for them then.
func TestStopWhileFilesHang(t *testing.T) {
	x := newTester(t)
	release := x.hanging()
	defer release()
	x.folder.patience.wait = time.Hour
	x.write("slow.yaml", node("n1"))
	x.write("slow2.yaml", node("n2"))
	ctx, cancel := context.WithCancel(context.Background())
	x.folder.patience.stop = ctx.Done()
	sink := &record{changed: make(chan struct{}, 1)}
	r := run{folder: x.folder, sink: sink, log: slog.New(slog.DiscardHandler)}
	done := make(chan struct{})
	go func() { defer close(done); r.pass(x.now) }()
	cancel()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits on")
	}
	if sink.synced != 0 || len(sink.problems) != 0 {
		t.Errorf("synced %d times with problems %v: what was not waited for is neither", sink.synced, sink.problems)
	}
}
