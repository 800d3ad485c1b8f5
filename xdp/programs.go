package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"lace-cni.io/lace/xdp/bpf"
)

// errOtherMaps: a map was made afresh, and its programs have to be as well.
var errOtherMaps = errors.New("it reads maps that are not in use any more")

// programs lists what is loaded, by name, and where it is kept.
func programs(p *bpf.LacePrograms) map[string]**ebpf.Program {
	return map[string]**ebpf.Program{
		bpf.LaceProgFromGo:     &p.FromGo,
		bpf.LaceProgFromHost:   &p.FromHost,
		bpf.LaceProgFromPod:    &p.FromPod,
		bpf.LaceProgFromUplink: &p.FromUplink,
		bpf.LaceProgToGo:       &p.ToGo,
		bpf.LaceProgToPort:     &p.ToPort,
	}
}

// loadPrograms takes over the programs that an earlier process of the same build pinned, if
// they read the maps that are in use; else it loads them, which costs half a second of the
// verifier's time, shared by the processors, and pins them for the next. The maps must be there.
func (o *Objects) loadPrograms(spec *ebpf.CollectionSpec) error {
	digest := bpf.LaceDigest()
	err := o.adoptPrograms(spec, digest)
	if err == nil {
		o.opened.Programs = true
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOtherMaps) {
		o.log.Warn("pinned programs cannot be used, loading them afresh", "path", o.pins.programPath(digest, ""), "why", err)
	}
	if err := o.verifyPrograms(spec); err != nil {
		return fmt.Errorf("loading BPF programs: %w", err)
	}
	return o.pinPrograms(digest)
}

// verifyPrograms loads all programs at once: the verifier takes one processor for each.
func (o *Objects) verifyPrograms(spec *ebpf.CollectionSpec) error {
	var group errgroup.Group
	for name, at := range programs(&o.bpf.LacePrograms) {
		alone := spec.Copy()
		alone.Programs = map[string]*ebpf.ProgramSpec{name: alone.Programs[name]}
		group.Go(func() error {
			loaded, err := ebpf.NewCollectionWithOptions(alone, ebpf.CollectionOptions{MapReplacements: o.maps()})
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			defer loaded.Close()
			*at = loaded.DetachProgram(name)
			return nil
		})
	}
	return group.Wait()
}

// adoptPrograms opens all pinned programs or none. fs.ErrNotExist and errOtherMaps: there are
// none for these maps, which is no fault.
func (o *Objects) adoptPrograms(spec *ebpf.CollectionSpec, digest string) error {
	maps, err := mapIDs(o.maps())
	if err != nil {
		return err
	}
	var found bpf.LacePrograms
	for name, at := range programs(&found) {
		path := o.pins.programPath(digest, name)
		if *at, err = ebpf.LoadPinnedProgram(path, nil); err == nil {
			err = isOurs(*at, spec.Programs[name], maps)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), found.Close())
		}
	}
	o.bpf.LacePrograms = found
	return nil
}

// isOurs says what tells a pinned program from the one that the spec would make.
func isOurs(p *ebpf.Program, want *ebpf.ProgramSpec, ids map[string]ebpf.MapID) error {
	what, err := p.Info()
	if err != nil {
		return err
	}
	if what.Type != want.Type || what.Name != want.Name {
		return fmt.Errorf("a program %q of type %s is pinned there", what.Name, what.Type)
	}
	used, ok := what.MapIDs()
	if !ok {
		return errors.New("the kernel does not tell which maps it reads")
	}
	reads := map[ebpf.MapID]bool{}
	for _, in := range want.Instructions {
		if in.IsLoadFromMap() {
			reads[ids[in.Reference()]] = true
		}
	}
	if len(used) < len(reads) {
		return fmt.Errorf("it reads %d maps and not %d: it is another program of that name", len(used), len(reads))
	}
	for _, id := range used {
		if !reads[id] {
			return errOtherMaps
		}
	}
	return nil
}

// mapIDs are what the kernel calls the maps, by name.
func mapIDs(maps map[string]*ebpf.Map) (map[string]ebpf.MapID, error) {
	ids := make(map[string]ebpf.MapID, len(maps))
	for name, m := range maps {
		id, _, err := identity(m)
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
		ids[name] = id
	}
	return ids, nil
}

// pinPrograms pins what was loaded, in the place of whatever is there.
func (o *Objects) pinPrograms(digest string) error {
	if err := os.RemoveAll(o.pins.programs()); err != nil {
		return fmt.Errorf("pins of earlier programs have to be removed by hand: %w", err)
	}
	if err := os.MkdirAll(o.pins.programPath(digest, ""), 0o700); err != nil {
		return fmt.Errorf("directory for pins: %w", err)
	}
	for name, p := range programs(&o.bpf.LacePrograms) {
		if err := (*p).Pin(o.pins.programPath(digest, name)); err != nil {
			return fmt.Errorf("pinning program %s: %w", name, err)
		}
	}
	return nil
}

func (p pins) programs() string { return filepath.Join(string(p), "programs") }

// programPath is in a directory for each build: an old one is never read, whatever it is.
func (p pins) programPath(digest, name string) string {
	return filepath.Join(p.programs(), digest, name)
}
