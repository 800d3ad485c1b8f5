package xdp

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// heldPin is a file that has to keep a map or a link that is in use.
type heldPin struct {
	part Part
	path string
	// instead says what the file keeps in its place; empty: it is the right one.
	instead func() (string, error)
	pin     func() error
}

// pinFile tells one pin from the next in the same place: each is a file of its own, and the
// BPF file system does not give a number twice.
type pinFile struct{ device, inode uint64 }

func pinFileAt(path string) (pinFile, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return pinFile{st.Dev, st.Ino}, err
}

// auditPin makes a pin again that was removed, or that keeps something else by now. What a
// file keeps is asked once: it cannot change without another file in its place.
func (o *Objects) auditPin(p heldPin) error {
	file, err := pinFileAt(p.path)
	if err != nil {
		return o.pinAgain(p, "removed")
	}
	if o.known[p.path] == file {
		return nil
	}
	instead, err := p.instead()
	if err != nil {
		return fmt.Errorf("pin %s: %w", p.path, err)
	}
	if instead == "" {
		o.known[p.path] = file
		return nil
	}
	if err := os.RemoveAll(p.path); err != nil {
		return fmt.Errorf("pin %s was replaced by %s, which cannot be removed: %w", p.path, instead, err)
	}
	return o.pinAgain(p, "replaced by "+instead)
}

// pinAgain makes a pin, and the directories for it should they be gone as well.
func (o *Objects) pinAgain(p heldPin, happened string) error {
	err := o.pins.create()
	if err == nil {
		err = p.pin()
	}
	if err != nil {
		return fmt.Errorf("pin %s was %s and cannot be made again: %w", p.path, happened, err)
	}
	o.repaired.tell(p.part, strings.TrimPrefix(p.path, string(o.pins)+"/")+" was "+happened)
	return nil
}

func mapPin(m *ebpf.Map, path string) heldPin {
	return heldPin{PartMapPin, path, func() (string, error) { return insteadOfMap(m, path) }, func() error { return pinMap(m, path) }}
}

func linkPin(l link.Link, path string) heldPin {
	return heldPin{PartLinkPin, path, func() (string, error) { return insteadOfLink(l, path) }, func() error { return pinLink(l, path) }}
}

// insteadOfMap compares the map behind a pin with the one in use.
func insteadOfMap(m *ebpf.Map, path string) (string, error) {
	there, err := ebpf.LoadPinnedMap(path, nil)
	switch {
	case isTransient(path, err):
		return "", err
	case err != nil:
		return "something that is no map", nil
	}
	defer there.Close()
	want, _, err := identity(m)
	if err != nil {
		return "", err
	}
	have, name, err := identity(there)
	if err != nil || have == want {
		return "", err
	}
	return fmt.Sprintf("another map (%q, id %d)", name, have), nil
}

// identity is what the kernel calls a map, and the name that its maker gave it.
func identity(m *ebpf.Map) (ebpf.MapID, string, error) {
	what, err := m.Info()
	if err != nil {
		return 0, "", err
	}
	id, ok := what.ID()
	if !ok {
		return 0, "", errors.New("the kernel gives it no id")
	}
	return id, what.Name, nil
}

// insteadOfLink compares the link behind a pin with the one in use.
func insteadOfLink(l link.Link, path string) (string, error) {
	there, err := link.LoadPinnedLink(path, nil)
	switch {
	case isTransient(path, err):
		return "", err
	case err != nil:
		return "something that is no link", nil
	}
	defer there.Close()
	want, err := l.Info()
	if err != nil {
		return "", err
	}
	have, err := there.Info()
	if err != nil || have.ID == want.ID {
		return "", err
	}
	return fmt.Sprintf("another link (id %d)", have.ID), nil
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
