package lab

import (
	"fmt"
	"os/exec"
	"runtime"
)

// nursery starts processes from one thread that lives as long as the nursery. The signal
// that a process gets at its parent's death (prctl PR_SET_PDEATHSIG) is sent when the
// *thread* that made it ends, and Go ends threads at will: a locked one it keeps.
type nursery struct {
	births chan birth
}

type birth struct {
	cmd  *exec.Cmd
	done chan error
}

func newNursery() *nursery {
	n := &nursery{births: make(chan birth)}
	go n.run()
	return n
}

func (n *nursery) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for b := range n.births {
		b.done <- b.cmd.Start()
	}
}

// start starts cmd. When the nursery closes, or the whole process dies, the kernel kills
// the children that asked for it.
func (n *nursery) start(cmd *exec.Cmd) error {
	b := birth{cmd, make(chan error, 1)}
	n.births <- b
	if err := <-b.done; err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return nil
}

func (n *nursery) close() { close(n.births) }
