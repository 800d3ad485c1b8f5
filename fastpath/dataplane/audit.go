package dataplane

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/xdp"
)

// auditEvery is how often everything that others could take away is looked at without
// being asked: half of the second in which it has to be there again.
const auditEvery = 500 * time.Millisecond

// rereadEvery is how often the contents of the kernel's maps are read back.
const rereadEvery = 10 * time.Second

// audit looks for what somebody took away or changed under the process, and puts it right:
// the trunk, programs, pins, sockets, and the process's own files. It belongs to the
// goroutine that keeps the tables.
type audit struct {
	node    *node
	notices <-chan struct{} // something about the trunk has changed
	failing bool            // said already that something cannot be put right
	reread  time.Time       // when the kernel's maps were read back last
}

func newAudit(ctx context.Context, n *node) *audit {
	a := &audit{node: n, reread: time.Now()}
	var err error
	if a.notices, err = n.trunk.Watch(ctx); err != nil {
		n.config.Log.Warn("the trunk cannot be watched, it is looked at twice a second all the same", "error", err)
	}
	return a
}

// run does one round. An error is that of a trunk that has to be made anew; whatever else
// cannot be put right is logged, shown in a gauge, and tried again.
func (a *audit) run() error {
	n := a.node
	err := n.trunk.Audit()
	if errors.Is(err, xdp.ErrTrunkGone) {
		return err
	}
	errs := []error{err, n.objects.Audit(n.trunk), a.sockets(), a.contents()}
	for queue, p := range n.ports {
		errs = append(errs, n.objects.AuditSocket(queue, p.Descriptor()))
	}
	a.report(errors.Join(append(errs, a.files())...))
	return nil
}

// contents reads the kernel's maps back, when it is time, and has them written again where
// they differ.
func (a *audit) contents() error {
	if time.Since(a.reread) < rereadEvery {
		return nil
	}
	a.reread = time.Now()
	if err := a.node.objects.Reread(); err != nil {
		return err
	}
	a.node.tables.reconcile()
	return nil
}

// files makes again those of the state directory that are this process's.
func (a *audit) files() error {
	n := a.node
	made, err := n.counters.Remake()
	if made {
		n.repairs.note(counter.RepairCounters, n.config.path(counterFile))
	}
	status := n.config.path(statusFile)
	if _, e := os.Lstat(status); errors.Is(e, fs.ErrNotExist) {
		if e = n.status.write(n.config.StateDir); e == nil {
			n.repairs.note(counter.RepairStatus, status)
		}
		err = errors.Join(err, e)
	}
	return err
}

// ours reports whether a file of the state directory is looked after here.
func (a *audit) ours(path string) bool {
	name := filepath.Base(path)
	return name == counterFile || name == statusFile
}

// report logs a failure once, until it is over.
func (a *audit) report(err error) {
	n := a.node
	switch {
	case err != nil && !a.failing:
		n.config.Log.Error("something was taken away and cannot be put right, trying again twice a second", "error", err)
	case err == nil && a.failing:
		n.config.Log.Info("everything is in place again")
	}
	a.failing = err != nil
	a.show()
}

// show sets the gauge by which others see that something is wrong.
func (a *audit) show() {
	broken := uint64(0)
	for _, failing := range []bool{a.failing, a.node.tables.failing} {
		if failing {
			broken++
		}
	}
	a.node.counters.Set(counter.Broken, broken)
}
