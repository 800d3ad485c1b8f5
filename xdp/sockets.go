package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/xdp/bpf"
)

// sockets are the programs at the root of the cgroup hierarchy through which the node's own
// sockets reach its own addresses. Their maps hold nothing that the tables do not say, and
// live with the links alone.
type sockets struct {
	bpf    bpf.AliasObjects
	loaded bool
	want   aliases
	places mirror[place, packet.Addr]
	names  mirror[place, packet.Addr]
	links  map[string]link.Link // by name of the pin
}

// socketHook is one place where a program of sockets is attached.
type socketHook struct {
	name    string // of the pin
	program *ebpf.Program
	attach  ebpf.AttachType
}

// socketLinks begins the names of the links; those of ports begin with a digit.
const socketLinks = "own-"

func (s *sockets) hooks() []socketHook {
	return []socketHook{
		// The way back first: no process may see an alias.
		{socketLinks + "recvmsg4", s.bpf.OwnRecvmsg4, ebpf.AttachCGroupUDP4Recvmsg},
		{socketLinks + "recvmsg6", s.bpf.OwnRecvmsg6, ebpf.AttachCGroupUDP6Recvmsg},
		{socketLinks + "getpeername4", s.bpf.OwnGetpeername4, ebpf.AttachCgroupInet4GetPeername},
		{socketLinks + "getpeername6", s.bpf.OwnGetpeername6, ebpf.AttachCgroupInet6GetPeername},
		{socketLinks + "sendmsg4", s.bpf.OwnSendmsg4, ebpf.AttachCGroupUDP4Sendmsg},
		{socketLinks + "sendmsg6", s.bpf.OwnSendmsg6, ebpf.AttachCGroupUDP6Sendmsg},
		{socketLinks + "connect4", s.bpf.OwnConnect4, ebpf.AttachCGroupInet4Connect},
		{socketLinks + "connect6", s.bpf.OwnConnect6, ebpf.AttachCGroupInet6Connect},
	}
}

// AttachSockets makes sure that the node's own sockets are sent to aliases: it loads the
// programs for the calling process's network namespace, and attaches what is not attached,
// beside the programs of others. Links of an earlier process are updated in place. What
// somebody took away since the last call is put back and told. An error means that the node
// does not reach its own addresses by Services, and nothing else; it may be called again.
//
// One system call for each of the eight programs when everything is in place.
func (o *Objects) AttachSockets() error {
	s := &o.sockets
	if !s.loaded {
		if err := s.load(); err != nil {
			return err
		}
	}
	if o.socketsHold() {
		return o.auditSocketPins()
	}
	root, err := openCgroupRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, h := range s.hooks() {
		if err := o.attachSocket(h, root); err != nil {
			return fmt.Errorf("attaching %s to the root of the cgroup2 hierarchy: %w", h.name, err)
		}
	}
	return o.auditSocketPins()
}

// load loads the programs and fills their maps, so that they know everything when they are
// attached.
func (s *sockets) load() error {
	spec, err := bpf.LoadAlias()
	if err != nil {
		return fmt.Errorf("embedded BPF object: %w", err)
	}
	cookie, err := netnsCookie()
	if err != nil {
		return err
	}
	if err := spec.Variables["node_cookie"].Set(cookie); err != nil {
		return fmt.Errorf("embedded BPF object: %w", err)
	}
	if err := spec.LoadAndAssign(&s.bpf, nil); err != nil {
		return fmt.Errorf("loading the BPF programs of sockets: %w", err)
	}
	s.places = newMirror[place, packet.Addr](bpf.AliasMapOwnPlaces, s.bpf.OwnPlaces)
	s.names = newMirror[place, packet.Addr](bpf.AliasMapOwnNames, s.bpf.OwnNames)
	s.links, s.loaded = map[string]link.Link{}, true
	return s.fill()
}

// netnsCookie names the network namespace of the calling thread, as programs see it.
func netnsCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket to ask for the network namespace: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("asking a socket for its network namespace: %w", err)
	}
	return cookie, nil
}

// socketsHold reports whether every program is attached by a link that is open here.
func (o *Objects) socketsHold() bool {
	for _, h := range o.sockets.hooks() {
		if l := o.sockets.links[h.name]; l == nil || !atRoot(l) {
			return false
		}
	}
	return true
}

// atRoot reports whether a link is attached to the root of the hierarchy; one that somebody
// detached is nowhere.
func atRoot(l link.Link) bool {
	what, err := l.Info()
	if err != nil {
		return false
	}
	c := what.Cgroup()
	return c != nil && c.CgroupId == cgroupRootID
}

func (o *Objects) attachSocket(h socketHook, root *os.File) error {
	s := &o.sockets
	old, open := s.links[h.name]
	if open {
		if atRoot(old) {
			return nil
		}
		delete(s.links, h.name)
		if err := unpin(o.pins.linkPath(h.name), old); err != nil {
			return err
		}
	}
	l, err := o.takeOverSocket(h)
	if err != nil {
		return err
	}
	if l == nil {
		if l, err = o.pinned(hook{name: h.name}, func() (link.Link, error) { return attachCgroup(h, root) }); err != nil {
			return err
		}
	}
	s.links[h.name] = l
	if open {
		o.repaired.tell(PartProgram, h.name)
	}
	return nil
}

// attachCgroup lets other programs be attached beside this one, before and after.
func attachCgroup(h socketHook, root *os.File) (link.Link, error) {
	l, err := link.AttachCgroup(link.CgroupOptions{Path: fmt.Sprintf("/proc/self/fd/%d", root.Fd()), Attach: h.attach, Program: h.program})
	if errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("%w: the rights are missing, or a program that admits no other is attached there (bpftool cgroup tree)", err)
	}
	return l, err
}

// takeOverSocket updates the link pinned under the hook's name. nil: there is none to take
// over.
func (o *Objects) takeOverSocket(h socketHook) (link.Link, error) {
	path := o.pins.linkPath(h.name)
	l, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		if atRoot(l) {
			if err = l.Update(h.program); err == nil {
				return l, nil
			}
		} else {
			err = errors.New("it is not attached to the root of the cgroup2 hierarchy")
		}
		l.Close()
	}
	o.log.Warn("pinned link cannot be taken over, attaching anew", "path", path, "why", err)
	return nil, os.RemoveAll(path)
}

func (o *Objects) auditSocketPins() error {
	var errs []error
	for name, l := range o.sockets.links {
		errs = append(errs, o.auditPin(linkPin(l, o.pins.linkPath(name))))
	}
	return errors.Join(errs...)
}

// rereadAliases is Reread for the maps of sockets.
func (o *Objects) rereadAliases() error {
	if !o.sockets.loaded {
		return nil
	}
	return errors.Join(reread(&o.sockets.places, o.repaired), reread(&o.sockets.names, o.repaired))
}

// close lets go of programs, maps and links; what is pinned works on.
func (s *sockets) close() error {
	if !s.loaded {
		return nil
	}
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.Close())
	}
	s.loaded, s.links = false, nil
	return errors.Join(append(errs, s.bpf.Close())...)
}

func isSocketLink(name string) bool { return strings.HasPrefix(name, socketLinks) }
