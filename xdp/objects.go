package xdp

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/xdp/bpf"
)

// Config of the loader.
type Config struct {
	BPFFS     string       // a mounted BPF file system; everything goes under <BPFFS>/lace
	FlowSlots int          // flow table slots wanted; rounded up by conntrack.RoundSlots
	Log       *slog.Logger // nil: slog.Default
	Repaired  Repaired     // told of what Audit, AuditSocket and SyncPorts put right
}

// Objects are the loaded programs and the pinned maps. For one goroutine, but for Counters.
type Objects struct {
	repaired Repaired

	pins    pins
	log     *slog.Logger
	bpf     bpf.LaceObjects
	opened  Opened
	counted bool // the flows of a table that is given up
	flows   []byte
	tags    []byte

	affinity []byte
	records  *ebpf.Map // behind affinity; nil until OpenAffinity

	settings settings
	ports    mirror[uint32, port]
	devices  mirror[uint32, device]
	low      mirror[uint32, device] // the same as devices, of low indexes
	sources  mirror[source, uint32]
	claims   mirror[claim, uint32]

	backendFilter filter // addresses whose fragments may be replies
	claimFilter   filter // as it was written

	frontends, backends, targets generations
	police                       policing
	sockets                      sockets

	mode   Mode
	links  map[string]held    // by name of the pin
	known  map[string]pinFile // pins that keep what they have to, by path
	warned map[uint32]uint32  // MTU that was complained of, by interface index
}

// Opened says what Open found.
type Opened struct {
	Kept      bool     // the flow table of an earlier process was taken over
	Programs  bool     // the programs of an earlier process were taken over, nothing was loaded
	Replaced  []string // pinned maps that were damaged, foreign, or of another layout or size, and were made afresh
	LostFlows int      // flows that went with a replaced flow table
	Uncounted bool     // a flow table went whose flows nobody can count: LostFlows is without them
}

// Lost is the number of flows that were lost, for people: it may not be known.
func (o Opened) Lost() string {
	if o.Uncounted {
		return "unknown"
	}
	return strconv.Itoa(o.LostFlows)
}

// Open probes the kernel, takes over the maps that an earlier process pinned, makes those
// that are missing, and takes over or loads the programs. What is attached already goes on
// with its old program until AttachTrunk and SyncPorts replace it in place, so that no packet
// meets a program whose maps are not filled.
//
// A pinned map that is damaged, foreign, or of another layout or size is unpinned and made
// afresh, with a line in the log; Opened tells which, and how many flows were lost. So is a
// map of Lace that lies under the name of another.
//
// Errors: ErrKernel when the kernel lacks tcx; a BPF file system that is not mounted; no
// memory for the flow table.
func Open(c Config) (*Objects, error) {
	if c.FlowSlots <= 0 {
		return nil, fmt.Errorf("flow table of %d slots: at least one is needed", c.FlowSlots)
	}
	if err := probe(); err != nil {
		return nil, err
	}
	o := &Objects{pins: pinsUnder(c.BPFFS), log: c.Log, repaired: c.Repaired, links: map[string]held{}, known: map[string]pinFile{}, warned: map[uint32]uint32{}}
	if o.log == nil {
		o.log = slog.Default()
	}
	if err := o.pins.create(); err != nil {
		return nil, err
	}
	if err := o.load(conntrack.RoundSlots(c.FlowSlots)); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Objects) load(flowSlots int) error {
	spec, err := bpf.LoadLace()
	if err != nil {
		return fmt.Errorf("embedded BPF object: %w", err)
	}
	spec.Maps[bpf.LaceMapFlows].MaxEntries = uint32(flowSlots)
	spec.Maps[bpf.LaceMapFlowTags].MaxEntries = uint32(conntrack.BucketsIn(flowSlots))
	kept, err := o.adopt(spec)
	if err != nil {
		return err
	}
	defer closeMaps(kept)
	if err := spec.LoadAndAssign(&o.bpf.LaceMaps, &ebpf.CollectionOptions{MapReplacements: kept}); err != nil {
		return fmt.Errorf("making BPF maps: %w", err)
	}
	if err := o.pinMissing(kept); err != nil {
		return err
	}
	if err := o.loadPrograms(spec); err != nil {
		return err
	}
	_, o.opened.Kept = kept[bpf.LaceMapFlows]
	if err := o.mapFlows(); err != nil {
		return err
	}
	if err := o.mapAllGenerations(); err != nil {
		return err
	}
	if err := o.mapPolice(); err != nil {
		return err
	}
	return o.readState()
}

// mapFlows maps the flow table into memory.
func (o *Objects) mapFlows() (err error) {
	if o.flows, err = mapArray("flow table", o.bpf.Flows); err != nil {
		return err
	}
	o.tags, err = mapArray("tags of the flow table", o.bpf.FlowTags)
	return err
}

// mapArray maps all entries of an array into memory.
func mapArray(what string, m *ebpf.Map) ([]byte, error) {
	size := int(m.MaxEntries() * m.ValueSize())
	mem, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping the %s (%d bytes): %w", what, size, err)
	}
	return mem, nil
}

func unmap(mem *[]byte) error {
	if *mem == nil {
		return nil
	}
	err := unix.Munmap(*mem)
	*mem = nil
	return err
}

// readState reads what the kept maps hold, so that the first sync writes differences only.
func (o *Objects) readState() error {
	o.ports = newMirror[uint32, port]("ports", o.bpf.Ports)
	o.devices = newMirror[uint32, device]("devices", o.bpf.Devices)
	o.low = newMirror[uint32, device]("low_devices", o.bpf.LowDevices)
	o.sources = newMirror[source, uint32]("sources", o.bpf.Sources)
	o.claims = newMirror[claim, uint32]("claims", o.bpf.Claims)
	for _, read := range []func() error{o.ports.read, o.devices.read, o.low.read, o.sources.read, o.claims.read, o.readFilter, o.readBackends, o.readSettings} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// Opened says what Open found.
func (o *Objects) Opened() Opened { return o.opened }

// FlowMemory is the flow table and the tags of its buckets, shared with the programs and
// with every process that maps them: conntrack.Map makes a table of them. Valid until Close.
func (o *Objects) FlowMemory() (slots, tags []byte) { return o.flows, o.tags }

// SetSocket makes the AF_XDP socket fd receive what the trunk brings on queue. A socket that
// is closed leaves its slot by itself.
func (o *Objects) SetSocket(queue, fd int) error {
	if queue < 0 || queue >= MaxQueues {
		return fmt.Errorf("socket for queue %d: queues go from 0 to %d", queue, MaxQueues-1)
	}
	if err := o.bpf.Sockets.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("socket %d for queue %d: %w", fd, queue, err)
	}
	return nil
}

// Close lets go of programs, maps and links; what is pinned stays and works on. The flow
// memory must not be used any more.
func (o *Objects) Close() error {
	errs := []error{unmap(&o.flows), unmap(&o.tags), unmap(&o.affinity), o.records.Close(), o.police.unmap(), o.sockets.close()}
	for _, g := range []*generations{&o.frontends, &o.backends, &o.targets} {
		errs = append(errs, g.unmap())
	}
	for _, l := range o.links {
		errs = append(errs, l.Close())
	}
	clear(o.links)
	return errors.Join(append(errs, o.bpf.Close())...)
}
