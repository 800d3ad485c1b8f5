package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lace-cni.io/lace/fastpath/right"
	"lace-cni.io/lace/slowpath/attach"
	"lace-cni.io/lace/slowpath/netdev"
	"lace-cni.io/lace/xdp"
)

// Cleanup removes everything that Lace has left on the node: the routes of the service
// ranges, its reservation of ports, pinned programs, links and maps with all flows,
// the trunk, the files of the state directory, and the directory itself when nothing else is
// in it. It needs no cluster and only StateDir, BPFFS, Stack and Log of the Config. It is
// refused while an agent or a fast path runs. removed says what was there and is gone, a line each, also
// when something else could not be removed; where there is nothing it is empty.
func Cleanup(c Config) (removed []string, err error) {
	removed, err = cleanup(c)
	return removed, right.Explain(err, right.NetAdmin, right.SysAdmin)
}

func cleanup(c Config) ([]string, error) {
	if c.StateDir == "" {
		c.StateDir = DefaultStateDir
	}
	if c.BPFFS == "" {
		c.BPFFS = DefaultBPFFS
	}
	there := c.present() // taking the locks makes files
	release, err := c.alone()
	if err != nil {
		return nil, err
	}
	defer release()
	if c.Stack == nil {
		k, err := netdev.Open()
		if err != nil {
			return nil, err
		}
		defer k.Close()
		c.Stack = k
	}
	var s sweep
	s.routes(c.Stack)
	s.sourcePorts(&c)
	s.pins(c.BPFFS)
	s.trunk(&c)
	s.files(&c, there)
	return s.removed, errors.Join(s.failed...)
}

// sweep is one cleanup on its way.
type sweep struct {
	removed []string
	failed  []error
}

// note says that something is gone, unless removing it failed.
func (s *sweep) note(err error, was bool, format string, args ...any) {
	switch {
	case err != nil:
		s.failed = append(s.failed, err)
	case was:
		s.removed = append(s.removed, fmt.Sprintf(format, args...))
	}
}

func (s *sweep) routes(stack netdev.Stack) {
	gone, err := attach.RemoveRoutes(stack)
	s.note(nil, len(gone) > 0, "routes of service ranges: %s", join(gone))
	s.note(err, false, "")
}

func (s *sweep) sourcePorts(c *Config) {
	reservation := c.reservation()
	gone, err := reservation.Release()
	s.note(err, len(gone) > 0, "ports, from net.ipv4.ip_local_reserved_ports: %s", join(gone))
}

func (s *sweep) pins(bpffs string) {
	dir := filepath.Join(bpffs, "lace")
	_, err := os.Lstat(dir)
	links, maps := entries(filepath.Join(dir, "links")), entries(filepath.Join(dir, "maps"))
	s.note(xdp.Cleanup(bpffs), err == nil, "%s: %d links of BPF programs, and %d maps with all flows", dir, links, maps)
}

func entries(dir string) int {
	e, _ := os.ReadDir(dir) // what cannot be read is none
	return len(e)
}

func (s *sweep) trunk(c *Config) {
	_, err := os.Lstat(c.path("trunk.netns"))
	was := err == nil
	links, err := c.Stack.Links()
	for _, l := range links {
		was = was || l.Name == attach.Trunk
	}
	s.note(errors.Join(err, xdp.RemoveTrunk(c.StateDir)), was, "trunk: %s, and its private network namespace", attach.Trunk)
}

// files of the state directory, the locks last.
var files = []string{"snapshot", "counters", "fastpath.json", "agent.sock", "fastpath.lock", "agent.lock"}

// present lists the files of the state directory that are there.
func (c *Config) present() (there []string) {
	for _, name := range files {
		if _, err := os.Lstat(c.path(name)); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// files removes those of the state directory, and the directory when it is empty then:
// what somebody else keeps in it is left to him.
func (s *sweep) files(c *Config, there []string) {
	var failed []error
	for _, name := range files {
		if err := os.Remove(c.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	s.note(errors.Join(failed...), len(there) > 0, "files in %s: %s", c.StateDir, strings.Join(there, ", "))
	if os.Remove(c.StateDir) == nil {
		s.removed = append(s.removed, c.StateDir)
	}
}

func join[T fmt.Stringer](in []T) string {
	words := make([]string, len(in))
	for i, v := range in {
		words[i] = v.String()
	}
	return strings.Join(words, ", ")
}

// alone takes the locks of both processes, so that neither runs nor starts meanwhile: those in
// the state directory, and those of a fast path that has another one. What is not there
// nobody holds.
func (c *Config) alone() (release func(), err error) {
	var held []*os.File
	release = func() {
		for _, f := range held {
			f.Close()
		}
	}
	for _, take := range []func() (*os.File, error){
		func() (*os.File, error) { return c.lockOf("agent.lock", "lace-agent") },
		func() (*os.File, error) { return c.lockOf("fastpath.lock", "lace-fastpath") },
		func() (*os.File, error) { return lockPlace("/proc/thread-self/ns/net", "network namespace") },
		func() (*os.File, error) { return lockPlace(filepath.Join(c.BPFFS, "lace"), "BPF file system") },
	} {
		f, err := take()
		if err != nil {
			release()
			return nil, err
		}
		if f != nil {
			held = append(held, f)
		}
	}
	return release, nil
}

// lockOf takes a lock of the state directory; nil when there is no such directory.
func (c *Config) lockOf(name, who string) (*os.File, error) {
	if _, err := os.Stat(c.StateDir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return lock(c.path(name), who)
}
