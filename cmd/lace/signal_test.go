package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wrongFolder has so many Problems that a pipe does not hold what is said of them.
func wrongFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	text := strings.Repeat("apiVersion: v1\nkind: Service\nspce: {}\n---\n", 5000)
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestCheckEndsWithItsContext: a folder that was not checked to the end is neither right nor wrong.
func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("told to stop"))
	var out, errs strings.Builder
	code := run(ctx, []string{"check", "--source-dir", wrongFolder(t)}, &out, &errs)
	if code != exitBad || out.Len() > 0 || !strings.Contains(errs.String(), "was not read to its end: told to stop") {
		t.Errorf("exit code %d, output %q, message %q", code, out.String(), errs.String())
	}
}

// TestTheSecondSignalKills: the first one asks, and a command that is stuck all the same, here in
// writing to somebody who does not read, ends with the next.
func TestTheSecondSignalKills(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "check", "--source-dir", wrongFolder(t), "--node-name", "n1")
	cmd.Env = append(os.Environ(), asLace+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it writes: the signals are asked for
		t.Fatal(err)
	}
	ended := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := cmd.Process.Wait()
		ended <- state
	}()
	again, late := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			continue
		case <-late:
			_ = cmd.Process.Kill()
			t.Error("it does not end")
		case state := <-ended:
			if by := state.Sys().(syscall.WaitStatus); !by.Signaled() || by.Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v, want it killed by the signal", state)
			}
		}
		return
	}
}
