package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// cell is a process in namespaces of its own, seen from the process that started it.
type cell struct {
	name  string
	cmd   *exec.Cmd
	calls *rpc.Client
	net   netns.NsHandle
	links *netlink.Handle // speaks netlink inside the cell
	ended chan struct{}
}

// cellFlags give a process a network, process tree, host name, mounts and cgroup view of
// its own.
const cellFlags = unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// controlFD is where a process of the lab finds its socket to the lab.
const controlFD = 3

// newCell starts this executable again in new namespaces, in the given role.
func newCell(n *nursery, name string, spec cellSpec) (*cell, error) {
	spec.Name = name
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("%s: control socket: %w", name, err)
	}
	defer theirs.Close()
	cmd, err := roleCommand(roleCell, spec)
	if err != nil {
		ours.Close()
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: cellFlags,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // Ctrl-C is for the lab's owner, who then ends the cells
	}
	if err := n.start(cmd); err != nil {
		ours.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := &cell{name: name, cmd: cmd, calls: rpc.NewClient(ours), ended: make(chan struct{}), net: -1}
	go func() {
		cmd.Wait()
		close(c.ended)
	}()
	return c, c.enter()
}

// enter opens the handles through which links inside the cell are made.
func (c *cell) enter() (err error) {
	if err := c.call(context.Background(), "Cell.Ready", struct{}{}, &struct{}{}); err != nil {
		return err
	}
	if c.net, err = netns.GetFromPid(c.pid()); err != nil {
		return fmt.Errorf("%s: network namespace: %w", c.name, err)
	}
	if c.links, err = netlink.NewHandleAt(c.net); err != nil {
		return fmt.Errorf("%s: netlink: %w", c.name, err)
	}
	return nil
}

func (c *cell) pid() int { return c.cmd.Process.Pid }

// root is the path under which the lab's owner sees the cell's own mounts.
func (c *cell) root() string { return fmt.Sprintf("/proc/%d/root", c.pid()) }

// call asks the cell's process for something and waits for the answer or the end of ctx.
func (c *cell) call(ctx context.Context, method string, args, reply any) error {
	done := c.calls.Go(method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-done.Done:
	case <-ctx.Done():
		return fmt.Errorf("%s: %s: %w", c.name, method, ctx.Err())
	}
	if errors.Is(done.Error, rpc.ErrShutdown) {
		return fmt.Errorf("%s: %s: its process has ended", c.name, method)
	}
	if done.Error != nil {
		return fmt.Errorf("%s: %w", c.name, done.Error)
	}
	return nil
}

// kill ends the process and everything in its process namespace, and waits for that.
func (c *cell) kill() {
	c.cmd.Process.Kill()
	<-c.ended
	c.calls.Close()
	if c.links != nil {
		c.links.Close()
	}
	if c.net.IsOpen() {
		c.net.Close()
	}
}

// socketPair gives a connection for this process and a file for the child's.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "control")
	defer f.Close()
	ours, err := net.FileConn(f)
	theirs := os.NewFile(uintptr(fds[1]), "control")
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// roleCommand prepares this executable to be run again in a role.
func roleCommand(role string, spec any) (*exec.Cmd, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+role, specVariable+"="+string(b))
	cmd.Stderr = os.Stderr
	return cmd, nil
}
