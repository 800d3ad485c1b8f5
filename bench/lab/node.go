package lab

import (
	"context"
	"path/filepath"
	"syscall"
	"time"
)

// Node is a node of the cluster: a host that can run a fast path and an agent.
type Node struct {
	*Host
	lab      *Lab
	spec     *nodeSpec
	stateDir string
}

// StateDir is the node's state directory as its own processes see it.
func (n *Node) StateDir() string { return n.stateDir }

// StatePath is a file of the node's state directory as the owner of the lab sees it. It
// goes through the node's process, so it ends with the node.
func (n *Node) StatePath(name string) string {
	return filepath.Join(n.cell.root(), n.stateDir, name)
}

// Log is the file with the output of one of the node's processes.
func (n *Node) Log(role string) string { return n.lab.folder.log(n.Name, role) }

// stopPatience is how long a process may take to end after it was told to.
const stopPatience = 10 * time.Second

// startProcess starts one of the node's processes.
func (n *Node) startProcess(ctx context.Context, role string, spec any) error {
	_, err := n.lab.StartProgram(ctx, n.Host, role, spec)
	return err
}

func (n *Node) signal(ctx context.Context, role string, sig syscall.Signal) error {
	return n.lab.SignalProgram(ctx, n.Host, role, sig)
}

// KillFastpath kills the fast path with SIGKILL and returns when it is gone.
func (n *Node) KillFastpath(ctx context.Context) error {
	return n.signal(ctx, roleFastpath, syscall.SIGKILL)
}

// KillAgent kills the agent with SIGKILL and returns when it is gone.
func (n *Node) KillAgent(ctx context.Context) error {
	return n.signal(ctx, roleAgent, syscall.SIGKILL)
}

// StopFastpath asks the fast path to end and returns when it has.
func (n *Node) StopFastpath(ctx context.Context) error {
	return n.signal(ctx, roleFastpath, syscall.SIGTERM)
}

// StopAgent asks the agent to end and returns when it has.
func (n *Node) StopAgent(ctx context.Context) error {
	return n.signal(ctx, roleAgent, syscall.SIGTERM)
}
