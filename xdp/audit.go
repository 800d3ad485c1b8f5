package xdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// Audit looks whether the kernel still has everything that this process gave it, and puts
// back what somebody took away: detached programs, and pins of links and maps that were
// removed or are of something else now. A program whose device is gone is left to SyncPorts. What cannot be put right is named in
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
		errs = append(errs, o.auditPin(linkPin(l.Link, o.pins.linkPath(name))))
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
		errs = append(errs, o.auditPin(mapPin(m, o.pins.mapPath(name))))
	}
	return errors.Join(errs...)
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
