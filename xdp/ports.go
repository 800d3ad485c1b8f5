package xdp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"lace-cni.io/lace/fastpath/table"
)

// port is struct port of xdp/bpf/port.h.
type port struct {
	Ifindex uint32
	MTU     uint32
	Kind    uint8
	Pad     [3]uint8
	PeerMAC [6]byte
	HostMAC [6]byte
}

// device is struct device of xdp/bpf/port.h.
type device struct {
	Network uint32
	Port    uint16
	Kind    uint8
	Pad     uint8
}

// SyncPorts makes the ports exactly these: the maps are filled, programs attached to both
// directions of every pod and uplink, and detached from devices that are no port any more.
// A port whose device is gone or cannot be attached to is named in the error and left out,
// so that packets for it are counted (unknown-port-id); the others work. The host port's
// device is the trunk's, whatever the record says.
func (o *Objects) SyncPorts(ports []table.Port) error {
	byID := make(map[uint32]port, len(ports))
	byDevice := make(map[uint32]device, len(ports))
	hooks := make([]hook, 0, 2*len(ports))
	s := o.settings
	var errs []error
	for i := range ports {
		p := &ports[i]
		if err := o.checkPort(p, byID, byDevice); err != nil {
			errs = append(errs, err)
			continue
		}
		byID[uint32(p.ID)] = port{Ifindex: p.Ifindex, MTU: p.MTU, Kind: uint8(p.Kind), PeerMAC: p.PeerMAC, HostMAC: p.HostMAC}
		if p.Kind == table.PortHost {
			s.HostNetwork = uint32(p.Network)
			continue
		}
		byDevice[p.Ifindex] = device{Network: uint32(p.Network), Port: p.ID, Kind: uint8(p.Kind)}
		hooks = append(hooks, o.portHooks(p)...)
	}
	o.forgetMoved(byID)
	// A device that is no port any more passes everything before its id can mean another.
	low := o.lowDevices(byDevice)
	errs = append(errs, o.low.trim(low), o.devices.trim(byDevice), o.set(s), o.ports.put(byID),
		o.devices.put(byDevice), o.low.put(low), o.ports.trim(byID))
	return errors.Join(append(errs, o.syncHooks(hooks)...)...)
}

// lowDevices are those that an array holds as well. The hash keeps them: programs of an
// earlier version, attached until they are replaced, know nothing else.
func (o *Objects) lowDevices(all map[uint32]device) map[uint32]device {
	low := make(map[uint32]device, len(all))
	for ifindex, d := range all {
		if ifindex < o.bpf.LowDevices.MaxEntries() {
			low[ifindex] = d
		}
	}
	return low
}

// checkPort refuses a record that would make the maps contradict themselves, or whose
// device is not there.
func (o *Objects) checkPort(p *table.Port, byID map[uint32]port, byDevice map[uint32]device) error {
	if err := checkRecord(p, byID, byDevice); err != nil || p.Kind == table.PortHost {
		return err
	}
	if err := o.checkDevice(p); err != nil {
		return fmt.Errorf("port %d (%s): %w", p.ID, name(p), err)
	}
	o.checkMTU(p)
	return nil
}

func checkRecord(p *table.Port, byID map[uint32]port, byDevice map[uint32]device) error {
	_, twice := byID[uint32(p.ID)]
	other, taken := byDevice[p.Ifindex]
	switch {
	case p.ID == 0 || p.ID >= table.MaxPorts:
		return fmt.Errorf("port %d: ids go from 1 to %d", p.ID, table.MaxPorts-1)
	case twice:
		return fmt.Errorf("port %d is there twice", p.ID)
	case p.Kind < table.PortHost || p.Kind > table.PortUplink:
		return fmt.Errorf("port %d: kind %d is unknown", p.ID, p.Kind)
	case (p.ID == table.HostPort) != (p.Kind == table.PortHost):
		return fmt.Errorf("port %d has kind %d: port %d, and no other, is the host", p.ID, p.Kind, table.HostPort)
	case p.Kind == table.PortHost:
		return nil
	case p.Ifindex == 0:
		return fmt.Errorf("port %d has no device", p.ID)
	case taken:
		return fmt.Errorf("ports %d and %d share device %d", other.Port, p.ID, p.Ifindex)
	}
	return nil
}

// syncHooks attaches what is new before it detaches what is old.
func (o *Objects) syncHooks(hooks []hook) (errs []error) {
	wanted := make(map[string]bool, len(hooks))
	for _, h := range hooks {
		wanted[h.name] = true
		if err := o.attachTCX(h); err != nil {
			errs = append(errs, err)
		}
	}
	pinned, err := o.pins.links()
	if err != nil {
		return append(errs, err)
	}
	for _, n := range pinned {
		if wanted[n] || slices.Contains(trunkLinks, n) || isSocketLink(n) {
			continue
		}
		if err := o.detach(n); err != nil {
			errs = append(errs, fmt.Errorf("detaching %s: %w", n, err))
		}
	}
	return errs
}

// portHooks names the pins by index alone: a device that is renamed keeps its links.
func (o *Objects) portHooks(p *table.Port) []hook {
	in := o.bpf.FromPod
	if p.Kind == table.PortUplink {
		in = o.bpf.FromUplink
	}
	return []hook{
		{fmt.Sprintf("%d-in", p.Ifindex), int(p.Ifindex), in, ebpf.AttachTCXIngress},
		{fmt.Sprintf("%d-out", p.Ifindex), int(p.Ifindex), o.bpf.ToPort, ebpf.AttachTCXEgress},
	}
}

// checkDevice looks at a device that is not attached to yet: it must be there, and the
// programs expect Ethernet.
func (o *Objects) checkDevice(p *table.Port) error {
	if o.holds(fmt.Sprintf("%d-in", p.Ifindex), int(p.Ifindex)) {
		return nil
	}
	l, err := netlink.LinkByIndex(int(p.Ifindex))
	if err != nil {
		return fmt.Errorf("device %d: %w", p.Ifindex, err)
	}
	if kind := l.Attrs().EncapType; kind != "ether" {
		return fmt.Errorf("device %s is of type %s; only Ethernet devices can be ports", l.Attrs().Name, kind)
	}
	return nil
}

// checkMTU says once for each device and MTU that some of its packets will not fit.
func (o *Objects) checkMTU(p *table.Port) {
	if o.settings.MTU == 0 || p.MTU <= o.settings.MTU || o.warned[p.Ifindex] == p.MTU {
		return
	}
	o.warned[p.Ifindex] = p.MTU
	o.log.Warn("senders of packets to Services that are longer than the trunk's MTU are told to send shorter ones",
		"device", name(p), "mtu", p.MTU, "trunk_mtu", o.settings.MTU, "largest_trunk_mtu", MaxTrunkMTU)
}

func name(p *table.Port) string {
	n, _, _ := strings.Cut(string(p.Name[:]), "\x00")
	return n
}
