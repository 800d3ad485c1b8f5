package agent

import (
	"errors"
	"io/fs"
	"os"

	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/xdp"
)

// Cleanup removes everything that Lace has left on the node: the routes of the service
// ranges, pinned programs, links and maps with all flows, the trunk, and the files of the
// state directory. It needs no cluster and only StateDir, BPFFS, Stack and Log of the
// Config. It is refused while an agent or a fast path runs; where there is nothing it
// does nothing.
func Cleanup(c Config) error {
	if c.StateDir == "" {
		c.StateDir = DefaultStateDir
	}
	if c.BPFFS == "" {
		c.BPFFS = DefaultBPFFS
	}
	release, err := c.alone()
	if err != nil {
		return err
	}
	defer release()
	if c.Stack == nil {
		k, err := netdev.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		c.Stack = k
	}
	return errors.Join(
		attach.RemoveRoutes(c.Stack),
		xdp.Cleanup(c.BPFFS),
		xdp.RemoveTrunk(c.StateDir),
		c.removeFiles(),
	)
}

// alone takes the locks of both processes, so that neither runs nor starts meanwhile. A
// node without a state directory has neither.
func (c *Config) alone() (release func(), err error) {
	if _, err := os.Stat(c.StateDir); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	agent, err := lock(c.path("agent.lock"), "lace-agent")
	if err != nil {
		return nil, err
	}
	fast, err := lock(c.path("fastpath.lock"), "lace-fastpath")
	if err != nil {
		agent.Close()
		return nil, err
	}
	return func() { fast.Close(); agent.Close() }, nil
}

// files of the state directory, the locks last.
var files = []string{"snapshot", "counters", "fastpath.json", "agent.sock", "fastpath.lock", "agent.lock"}

func (c *Config) removeFiles() error {
	var failed []error
	for _, name := range files {
		if err := os.Remove(c.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
