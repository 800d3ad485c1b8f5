package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// hook is one place where a program is attached: a device and a direction. name is the
// file name of the pinned link.
type hook struct {
	name    string
	ifindex int
	program *ebpf.Program
	attach  ebpf.AttachType
}

// held is a link that this process keeps open, and what it was made for.
type held struct {
	link.Link
	hook
}

// holds reports whether the named link is open here and its device still there.
func (o *Objects) holds(name string, ifindex int) bool {
	l, ok := o.links[name]
	if !ok {
		return false
	}
	at, err := ifindexOf(l)
	return err == nil && at == ifindex
}

// attached makes sure that the hook's program is attached: a link that is there is updated
// in place, so that no packet slips by; one whose device is gone, or was replaced, is made
// anew.
func (o *Objects) attached(h hook, create func() (link.Link, error)) error {
	if o.holds(h.name, h.ifindex) {
		return o.update(h)
	}
	old, open := o.links[h.name]
	if open {
		if err := o.detach(h.name); err != nil {
			return err
		}
	}
	l, err := o.takeOver(h)
	if err != nil {
		return err
	}
	if l == nil {
		if l, err = o.pinned(h, create); err != nil {
			return err
		}
	}
	o.links[h.name] = held{l, h}
	if open && old.ifindex == h.ifindex { // else it is the trunk's, which was made anew
		o.repaired.tell(PartProgram, h.name)
	}
	return nil
}

// update puts the hook's program into the link held, should it be another: the device is
// the same, but the port is of another kind.
func (o *Objects) update(h hook) error {
	l := o.links[h.name]
	if l.program == h.program {
		return nil
	}
	if err := l.Update(h.program); err != nil {
		return err
	}
	o.links[h.name] = held{l.Link, h}
	return nil
}

// takeOver updates the link pinned under the hook's name. nil: there is none to take over.
func (o *Objects) takeOver(h hook) (link.Link, error) {
	path := o.pins.linkPath(h.name)
	l, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		var at int
		if at, err = ifindexOf(l); err == nil && at != h.ifindex {
			err = fmt.Errorf("its device is gone")
		}
		if err == nil {
			err = l.Update(h.program)
		}
		if err == nil {
			return l, nil
		}
		l.Close()
	}
	o.log.Warn("pinned link cannot be taken over, attaching anew", "path", path, "why", err)
	if err := os.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("unusable pin %s has to be removed by hand: %w", path, err)
	}
	return nil, nil
}

func (o *Objects) pinned(h hook, create func() (link.Link, error)) (link.Link, error) {
	l, err := create()
	if err != nil {
		return nil, err
	}
	err = o.pins.create() // somebody may have removed the directory, too
	if err == nil {
		err = l.Pin(o.pins.linkPath(h.name))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pinning link %s: %w", h.name, err), l.Close())
	}
	return l, nil
}

// attachTCX attaches before all other programs of the hook: one that ends the walk, as
// another dataplane's may, would hide claimed packets from those behind it.
func (o *Objects) attachTCX(h hook) error {
	err := o.attached(h, func() (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{Interface: h.ifindex, Program: h.program, Attach: h.attach, Anchor: link.Head()})
	})
	if err != nil {
		return fmt.Errorf("attaching %s: %w", h.name, err)
	}
	return nil
}

// detach ends a pinned link, whoever else may hold it open.
func (o *Objects) detach(name string) error {
	l := o.links[name].Link
	delete(o.links, name)
	delete(o.known, o.pins.linkPath(name))
	return unpin(o.pins.linkPath(name), l)
}

// unpin detaches a link and removes its pin. l may be nil.
func unpin(path string, l link.Link) error {
	if l == nil {
		var err error
		if l, err = link.LoadPinnedLink(path, nil); err != nil {
			return os.RemoveAll(path) // no link at all
		}
	}
	// A device that is gone has no program any more: the link cannot be detached and need not.
	_ = l.Detach()
	return errors.Join(l.Close(), os.RemoveAll(path))
}

// ifindexOf is the device of a link; 0 when it is gone.
func ifindexOf(l link.Link) (int, error) {
	what, err := l.Info()
	if err != nil {
		return 0, err
	}
	if x := what.TCX(); x != nil {
		return int(x.Ifindex), nil
	}
	if x := what.XDP(); x != nil {
		return int(x.Ifindex), nil
	}
	return 0, fmt.Errorf("a link of type %d, neither tcx nor XDP", what.Type)
}
