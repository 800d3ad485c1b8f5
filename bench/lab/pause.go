package lab

import (
	"context"
	"syscall"
)

// FreezeFastpath stops the fast path where it is (SIGSTOP), until ThawFastpath.
func (n *Node) FreezeFastpath(ctx context.Context) error {
	return n.nudge(ctx, roleFastpath, syscall.SIGSTOP)
}

// ThawFastpath lets a frozen fast path go on.
func (n *Node) ThawFastpath(ctx context.Context) error {
	return n.nudge(ctx, roleFastpath, syscall.SIGCONT)
}

// FreezeAgent stops the agent where it is (SIGSTOP), until ThawAgent.
func (n *Node) FreezeAgent(ctx context.Context) error {
	return n.nudge(ctx, roleAgent, syscall.SIGSTOP)
}

// ThawAgent lets a frozen agent go on.
func (n *Node) ThawAgent(ctx context.Context) error { return n.nudge(ctx, roleAgent, syscall.SIGCONT) }

// nudge sends a signal that does not end the process.
func (n *Node) nudge(ctx context.Context, role string, sig syscall.Signal) error {
	return n.cell.call(ctx, "Cell.SignalProcess", SignalArgs{Role: role, Signal: sig}, &struct{}{})
}
