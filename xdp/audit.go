package xdp

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// Audit looks whether the kernel still has everything that this process gave it, and puts
// back what somebody took away: detached programs, and removed pins of links and maps. A
// program whose device is gone is left to SyncPorts. What cannot be put right is named in
// the error; the rest is done all the same.
//
// It must be called after AttachTrunk. Two system calls for each attachment and one for
// each map, some microseconds each.
func (o *Objects) Audit(t *Trunk) error {
	return errors.Join(o.auditPrograms(t), o.auditLinkPins(), o.auditMapPins())
}

// auditPrograms attaches again what is detached from a device that is still there.
func (o *Objects) auditPrograms(t *Trunk) error {
	var loose []hook
	for name, l := range o.links {
		if !o.holds(name, l.ifindex) {
			loose = append(loose, l.hook)
		}
	}
	var errs []error
	for _, h := range loose {
		switch {
		case h.name == linkToGo:
			errs = append(errs, o.attachToGo(t))
		case deviceExists(h.ifindex):
			errs = append(errs, o.attachTCX(h))
		}
	}
	return errors.Join(errs...)
}

func deviceExists(ifindex int) bool {
	_, err := netlink.LinkByIndex(ifindex)
	return err == nil
}

func (o *Objects) auditLinkPins() error {
	var errs []error
	for name, l := range o.links {
		path := o.pins.linkPath(name)
		if exists(path) {
			continue
		}
		err := o.pinAgain(PartLinkPin, path, func() error { return pinLink(l.Link, path) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *Objects) auditMapPins() error {
	var errs []error
	all := o.maps()
	if o.records != nil {
		all[affinityMap] = o.records
	}
	for name, m := range all {
		path := o.pins.mapPath(name)
		if exists(path) {
			continue
		}
		err := o.pinAgain(PartMapPin, path, func() error { return pinMap(m, path) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// pinAgain makes a pin, and the directories for it should they be gone as well.
func (o *Objects) pinAgain(p Part, path string, pin func() error) error {
	err := o.pins.create()
	if err == nil {
		err = pin()
	}
	if err != nil {
		return fmt.Errorf("pin %s was removed and cannot be made again: %w", path, err)
	}
	o.repaired.tell(p, strings.TrimPrefix(path, string(o.pins)+"/"))
	return nil
}

// pinLink pins by a handle of its own, for l believes that it is pinned there.
func pinLink(l link.Link, path string) error {
	what, err := l.Info()
	if err != nil {
		return err
	}
	again, err := link.NewFromID(what.ID)
	if err != nil {
		return err
	}
	return errors.Join(again.Pin(path), again.Close())
}

func pinMap(m *ebpf.Map, path string) error {
	again, err := m.Clone()
	if err != nil {
		return err
	}
	return errors.Join(again.Pin(path), again.Close())
}

// AuditSocket enters a socket in the kernel's map again if its place is empty. What is in
// the place cannot be read: a socket of somebody else is replaced without a word.
func (o *Objects) AuditSocket(queue, fd int) error {
	err := o.bpf.Sockets.Update(uint32(queue), uint32(fd), ebpf.UpdateExist)
	if err == nil {
		return nil
	}
	if !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("socket %d for queue %d: %w", fd, queue, err)
	}
	if err := o.SetSocket(queue, fd); err != nil {
		return err
	}
	o.repaired.tell(PartSocket, fmt.Sprintf("queue %d", queue))
	return nil
}
