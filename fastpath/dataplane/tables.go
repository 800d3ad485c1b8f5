package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/xdp"
)

// kernel is the part of xdp.Objects that follows the tables.
type kernel interface {
	SyncGenerations(*table.Snapshot) error
	SetLane(on bool) error
	AddSources([]table.Address) error
	SyncPorts([]table.Port) error
	SyncSources([]table.Address) error
	SyncClaims([]xdp.Claim) error
	TrimClaims([]xdp.Claim) error
	SyncAliases([]xdp.Alias) error
	TrimAliases([]xdp.Alias) error
}

// user is somebody who may be reading a snapshot.
type user interface{ Uses(*table.Snapshot) bool }

// tables keeps the workers and the kernel on the newest good snapshot. It belongs to one
// goroutine; only current is shared.
type tables struct {
	path     string
	kernel   kernel
	flows    interface{ SetHalfOpenMax(int) }
	counters *counter.File
	log      *slog.Logger
	users    []user
	backends backends

	current atomic.Pointer[table.Snapshot]
	claimed []xdp.Claim // by the tables in use
	seen    identity    // of the file that was looked at last, good or not
	missing bool        // said already that there is no file
	failing bool        // said already that the kernel cannot be brought in line
}

// identity tells one version of a replaced file from the next.
type identity struct {
	inode   uint64
	size    int64
	changed unix.Timespec
}

// refresh looks whether there is another snapshot file, and takes it into use if it is
// good.
func (t *tables) refresh(ctx context.Context) {
	id, err := identify(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.sayMissing()
		return
	case err != nil:
		t.refuse(err)
		return
	case id == t.seen:
		return
	}
	t.seen, t.missing = id, false
	next, err := table.Open(t.path)
	if err != nil {
		t.refuse(err)
		return
	}
	t.use(ctx, next)
}

func identify(path string) (identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{inode: st.Ino, size: st.Size, changed: st.Ctim}, nil
}

func (t *tables) sayMissing() {
	if !t.missing && t.current.Load() == nil {
		t.log.Info("no snapshot yet: claimed packets wait for the agent to write one", "path", t.path)
	}
	t.missing = true
}

func (t *tables) refuse(err error) {
	t.counters.Add(counter.Refused, 1)
	if s := t.current.Load(); s != nil {
		t.log.Error("snapshot refused, the last good one stays in use", "error", err, "generation", s.Generation())
		return
	}
	t.log.Error("snapshot refused, there is none in use: new flows wait for a good one", "error", err)
}

// use puts a snapshot into service. The order keeps every packet under tables that know
// it: sockets are sent to no alias that goes; claims that go are gone before the tables that
// knew them; claims that come, come after the tables that know them. What the lane must not
// repeat any more is revoked right behind the swap, so that whatever it leaves to Go is
// judged by the new tables, and before a port's number can mean another device.
func (t *tables) use(ctx context.Context, next *table.Snapshot) {
	err := errors.Join(t.kernel.TrimAliases(aliases(next)), t.trimClaims(claims(next)), t.backends.widen(next, time.Now()))
	old := t.current.Swap(next)
	t.flows.SetHalfOpenMax(int(next.Settings().HalfOpenMax))
	t.report(errors.Join(err, t.sync(next)))
	t.retire(ctx, old)
	// Now nobody decides by the old ones any more, neither in the kernel nor here.
	t.counters.Set(counter.InUseSince, uint64(time.Now().UnixNano()))
	t.counters.Set(counter.Generation, next.Generation())
	t.log.Info("snapshot in use", "generation", next.Generation(), "ports", len(next.Ports()),
		"frontends", len(next.Frontends()), "backends", len(next.Backends()))
}

// trimClaims takes back the claims that the next tables do not have. Most changes are of
// endpoints and leave claims alone: packets need not wait until that is found out one by one.
func (t *tables) trimClaims(next []xdp.Claim) error {
	if t.claimed != nil && slices.Equal(t.claimed, next) {
		return nil
	}
	err := t.kernel.TrimClaims(next)
	if t.claimed = next; err != nil {
		t.claimed = nil // to be trimmed again
	}
	return err
}

// reconcile brings the kernel side in line again with what is in use: a device may have
// been replaced, or the last attempt may have failed.
func (t *tables) reconcile() {
	if s := t.current.Load(); s != nil {
		t.report(errors.Join(t.sync(s), t.backends.narrow(s, time.Now())))
	}
}

// sync tells the kernel what is in use. Addresses come before the ports behind which they
// live and go after them: a pod's first packet and its last are its own.
func (t *tables) sync(s *table.Snapshot) error {
	return errors.Join(
		t.kernel.SyncGenerations(s), t.kernel.SetLane(s.Settings().Lane != 0),
		t.kernel.AddSources(s.Addresses()), t.kernel.SyncPorts(s.Ports()), t.kernel.SyncSources(s.Addresses()),
		t.kernel.SyncClaims(claims(s)), t.kernel.SyncAliases(aliases(s)))
}

// report logs a failure once, until it is over.
func (t *tables) report(err error) {
	switch {
	case err != nil && !t.failing:
		t.log.Error("kernel tables could not be brought in line, trying again every second", "error", err)
	case err == nil && t.failing:
		t.log.Info("kernel tables are in line again")
	}
	if err != nil {
		t.counters.Add(counter.SyncFailures, 1)
	}
	t.failing = err != nil
}

// retire unmaps a snapshot that no worker reads any more. A round of a worker takes
// microseconds, so the wait is short.
func (t *tables) retire(ctx context.Context, old *table.Snapshot) {
	if old == nil {
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for t.used(old) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return // the process is about to end, and its mappings with it
		}
	}
	if err := old.Close(); err != nil {
		t.log.Warn("an old snapshot stays mapped", "error", err)
	}
}

func (t *tables) used(s *table.Snapshot) bool {
	for _, u := range t.users {
		if u.Uses(s) {
			return true
		}
	}
	return false
}

// claims lists the addresses of Services, whole: an unknown port of one is refused by
// the pipeline rather than shown to the node's own stack. Of addresses that nodes have, the
// ports of Services alone are claimed.
func claims(s *table.Snapshot) []xdp.Claim {
	var out []xdp.Claim
	for i := range s.Frontends() {
		if f := &s.Frontends()[i]; f.Flags&table.Narrow != 0 {
			out = append(out, xdp.Claim{Network: f.Network, Addr: f.Addr, Protocol: f.Protocol, Port: f.Port})
		}
	}
	s.VIPs(func(network packet.NetworkID, a packet.Addr) bool {
		out = append(out, xdp.Claim{Network: network, Addr: a})
		return true
	})
	return out
}

// close ends the use of the last snapshot; the workers must have returned.
func (t *tables) close() error {
	s := t.current.Swap(nil)
	if s == nil {
		return nil
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("unmapping the snapshot: %w", err)
	}
	return nil
}
