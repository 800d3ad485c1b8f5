package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// child is a process of the product inside a node.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// ProcessArgs says how to start a child.
type ProcessArgs struct {
	Role string
	Spec json.RawMessage
	Log  string // file that its output is appended to
}

// StartProcess starts a child; one of each role at a time.
func (s *cellService) StartProcess(a ProcessArgs, pid *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.children[a.Role]; c != nil && !c.over() {
		return fmt.Errorf("the %s runs already (process %d)", a.Role, c.cmd.Process.Pid)
	}
	log, err := os.OpenFile(a.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := roleCommand(a.Role, a.Spec)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", a.Role, err)
	}
	c := &child{cmd: cmd, ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(c.ended)
	}()
	if s.children == nil {
		s.children = map[string]*child{}
	}
	s.children[a.Role] = c
	*pid = cmd.Process.Pid
	return nil
}

func (c *child) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// SignalArgs names a child and what it gets.
type SignalArgs struct {
	Role   string
	Signal syscall.Signal
	Wait   time.Duration // for its end; 0: do not wait
}

// SignalProcess sends a signal to a child and, if asked to, waits for its end.
func (s *cellService) SignalProcess(a SignalArgs, _ *struct{}) error {
	s.mu.Lock()
	c := s.children[a.Role]
	s.mu.Unlock()
	if c == nil || c.over() {
		return fmt.Errorf("the %s does not run", a.Role)
	}
	if err := c.cmd.Process.Signal(a.Signal); err != nil {
		return fmt.Errorf("signal %v to the %s: %w", a.Signal, a.Role, err)
	}
	if a.Wait == 0 {
		return nil
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(a.Wait):
		return fmt.Errorf("the %s still runs %s after signal %v", a.Role, a.Wait, a.Signal)
	}
}
