package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// StartProgram starts a program on any host of the lab, one of each role at a time. Its
// output is in Log; it ends with the host. pid is its process as the host sees it.
func (l *Lab) StartProgram(ctx context.Context, h *Host, role string, spec any) (pid int, err error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", role, h.Name, err)
	}
	log := l.Log(h, role)
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return 0, err
	}
	err = h.cell.call(ctx, "Cell.StartProcess", ProcessArgs{Role: role, Spec: b, Log: log}, &pid)
	return pid, err
}

// SignalProgram sends a signal that ends a program, and returns when it has ended.
func (l *Lab) SignalProgram(ctx context.Context, h *Host, role string, sig syscall.Signal) error {
	args := SignalArgs{Role: role, Signal: sig, Wait: stopPatience}
	return h.cell.call(ctx, "Cell.SignalProcess", args, &struct{}{})
}

// Log is the file with the output of a program of a host.
func (l *Lab) Log(h *Host, role string) string { return l.folder.log(h.Name, role) }
