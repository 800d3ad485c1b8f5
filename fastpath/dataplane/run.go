package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/right"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp"
	"lace-cni.io/lace/xdp/xsk"
)

// rebuildAfter is the least time between two trunks.
const rebuildAfter = 200 * time.Millisecond

// Run serves the node until ctx is done, which is no error. It returns early only when
// it cannot start, or when something failed that a new start is the remedy for. Pinned
// programs, links and maps stay in every case. The error of a process that was refused
// something says which right it lacks.
func Run(ctx context.Context, c Config) error {
	return right.Explain(run(ctx, c), needed...)
}

// needed are the rights of a fast path.
var needed = []right.Capability{right.NetAdmin, right.NetRaw, right.BPF, right.SysAdmin, right.IPCLock}

func run(ctx context.Context, c Config) (err error) {
	if err := c.complete(); err != nil {
		return err
	}
	held, err := lock(ctx, &c)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	// Each worker must find a processor to run on beside whatever else goes on here.
	if n := c.Workers + 1; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
	n, err := open(c, &repairs{log: c.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	for again := false; ; again = true {
		began := time.Now()
		err := n.serve(ctx, again)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, xsk.ErrGone) && !errors.Is(err, xdp.ErrTrunkGone) {
			return err
		}
		c.Log.Error("the trunk was taken away, building it again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rebuildAfter - time.Since(began)):
		}
	}
}

// serve raises the trunk, again after it was taken away, serves, and lowers it.
func (n *node) serve(ctx context.Context, again bool) (err error) {
	defer func() { err = errors.Join(err, n.lower()) }()
	if err := n.raise(); err != nil {
		return err
	}
	// What changed while nobody was here is told to the kernel last. Until then the lane
	// goes on by what it was told before; what it leaves to Go afterwards finds a socket,
	// and workers that know the tables.
	n.tables.refresh(ctx)
	n.ready()
	if again {
		n.repairs.note(counter.RepairTrunk, "a device was deleted")
	}
	c := &n.config
	if err := n.status.write(c.StateDir); err != nil {
		// It is for people. The audit tries again, and says so until it is there.
		c.Log.Warn("serving without", "error", err)
	}
	n.saysServing(again)
	return n.run(ctx)
}

// saysServing logs how things are; how long the start took, once only.
func (n *node) saysServing(again bool) {
	c, s := &n.config, &n.status
	args := []any{"workers", c.Workers, "xdp", s.XDPMode, "sockets", s.SocketMode,
		"trunkMTU", c.TrunkMTU, "flows", n.flows.Len(), "kernel", s.Kernel}
	if !again {
		args = append(args, "startSeconds", s.StartSeconds)
	}
	c.Log.Info("serving", args...)
}

// newStatus says what is known once everything is up.
func newStatus(c Config) Status {
	return Status{
		PID: os.Getpid(), Started: time.Now().UTC(), Kernel: release(),
		SnapshotLayouts: []int{table.Layout},
		Workers:         c.Workers, Queues: c.Workers, TrunkMTU: c.TrunkMTU,
	}
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	return unix.ByteSliceToString(u.Release[:])
}
