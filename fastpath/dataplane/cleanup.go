package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/fastpath/right"
	"lace-cni.io/lace/xdp"
)

// Cleanup removes everything that Run leaves behind: pinned programs, links and maps with
// all flows, the trunk, and the files of the fast path. The snapshot is the agent's and
// stays. It is refused while a fast path runs. removed says what was there and is gone, a
// line each, also when something else could not be removed; where there is nothing it is
// empty.
func Cleanup(c Config) (removed []string, err error) {
	removed, err = cleanup(c)
	return removed, right.Explain(err, right.NetAdmin, right.SysAdmin)
}

func cleanup(c Config) ([]string, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	there := c.present() // taking the locks makes files
	held, err := lock(context.Background(), &c)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	var s sweep
	s.note(xdp.Cleanup(c.BPFFS), there.pins)
	s.note(xdp.RemoveTrunk(c.StateDir), there.trunk)
	s.note(c.removeFiles(), there.files)
	return s.removed, errors.Join(s.failed...)
}

// leftovers are what an earlier fast path has left, in words; empty: nothing.
type leftovers struct{ pins, trunk, files string }

func (c *Config) present() (there leftovers) {
	dir := filepath.Join(c.BPFFS, "lace")
	if links, maps := entries(dir, "links"), entries(dir, "maps"); links+maps > 0 {
		there.pins = fmt.Sprintf("%s: %d links of BPF programs, and %d maps with all flows", dir, links, maps)
	}
	_, err := os.Lstat(c.path("trunk.netns"))
	if _, e := netlink.LinkByName("lace0"); err == nil || e == nil {
		there.trunk = "trunk: lace0, and its private network namespace"
	}
	var names []string
	for _, name := range files {
		if _, err := os.Lstat(c.path(name)); err == nil {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		there.files = fmt.Sprintf("files in %s: %s", c.StateDir, strings.Join(names, ", "))
	}
	return there
}

func entries(dir, kind string) int {
	e, _ := os.ReadDir(filepath.Join(dir, kind)) // what cannot be read is none
	return len(e)
}

// files of the state directory that are the fast path's, the lock last.
var files = []string{counterFile, statusFile, lockFile}

func (c *Config) removeFiles() error {
	var errs []error
	for _, name := range files {
		if err := os.Remove(c.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sweep is one cleanup on its way.
type sweep struct {
	removed []string
	failed  []error
}

// note says that something is gone, if it was there and removing it did not fail.
func (s *sweep) note(err error, was string) {
	switch {
	case err != nil:
		s.failed = append(s.failed, err)
	case was != "":
		s.removed = append(s.removed, was)
	}
}
