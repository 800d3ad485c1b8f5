package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listenerVariable makes the test's executable a process that listens at a socket and never
// answers.
const listenerVariable = "LACE_TEST_LISTENER"

func TestMain(m *testing.M) {
	if path := os.Getenv(listenerVariable); path != "" {
		if _, err := net.Listen("unix", path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("listening")
		select {}
	}
	os.Exit(m.Run())
}

// startListener starts such a process.
func startListener(t *testing.T) (path string, p *os.Process) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent.sock")
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), listenerVariable+"="+path)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("it says %q: %v", line, err)
	}
	return path, c.Process
}

// TestAHaltedAgentIsNamed: it is not waited for to the end, and a command that asks for several
// things waits once.
func TestAHaltedAgentIsNamed(t *testing.T) {
	path, p := startListener(t)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c := NewClient(path)
	defer c.Close()
	_, err := c.Status(t.Context())
	var silent *SilentError
	if says := fmt.Sprintf("(process %d) does not answer, for it is halted: let it go on (kill -CONT %d)", p.Pid, p.Pid); !errors.As(err, &silent) || !strings.Contains(err.Error(), says) {
		t.Fatalf("%v, want %q in it", err, says)
	}
	c.peer.since = time.Now() // however slow this machine is
	if _, again := c.Services(t.Context()); again != err {
		t.Errorf("asked for something else at once: %v, want what the first got", again)
	}
	c.peer.since = time.Now().Add(-2 * silentFor)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Services(ctx); !errors.As(err, &silent) || !strings.Contains(err.Error(), "kill -CONT") {
		t.Errorf("a caller with less patience: %v, want the same", err)
	}
}

// TestASilentAgentIsNamed: one that runs and does not answer is another matter, and one who
// stopped asking is told so.
func TestASilentAgentIsNamed(t *testing.T) {
	path, p := startListener(t)
	c := NewClient(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Status(ctx)
	for _, word := range []string{path, fmt.Sprintf("(process %d) does not answer (waited ", p.Pid), "look into its log, and restart it"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want %q in it", err, word)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	var silent *SilentError
	if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) || errors.As(err, &silent) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
