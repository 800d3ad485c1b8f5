package xdp

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	lace0 = "lace0" // in the node's namespace
	lace1 = "lace1" // in the private one

	// MaxTrunkMTU is what plain XDP on a veth carries: a 4 KiB page less headroom (256),
	// struct skb_shared_info (320) and the Ethernet header.
	MaxTrunkMTU = 3506
	minTrunkMTU = 1280 // IPv6, RFC 8200 section 5

	// MaxQueues is the number of queues, and so of workers, that a trunk may have.
	MaxQueues = 64

	genModeNone = 1 // IN6_ADDR_GEN_MODE_NONE, linux/if_link.h
)

// Addresses are set, for random ones could begin like the trunk's own marks, and a network
// daemon does not replace an address that was set.
var (
	lace0MAC = [6]byte{0x02, 0x4c, 0x30, 0, 0, 0}
	lace1MAC = [6]byte{0x02, 0x4c, 0x30, 0, 0, 1}
)

// TrunkConfig of the veth pair.
type TrunkConfig struct {
	StateDir string       // holds trunk.netns
	Queues   int          // one per worker, 1 to MaxQueues
	MTU      int          // at least the largest MTU of pods and uplinks, at most MaxTrunkMTU
	Log      *slog.Logger // nil: slog.Default
	Repaired Repaired     // told of what Audit puts right
}

// Trunk is the veth pair over which packets go to Go and back: lace0 on the node's side,
// lace1 in a private network namespace, where nobody else can inject. Both outlive the
// process. For one goroutine, but for Do.
type Trunk struct {
	Lace0, Lace1 int     // interface indexes; Lace1's is one of the private namespace
	MAC          [6]byte // of lace0: destination of every frame on the trunk
	Queues, MTU  int

	ns       *namespace
	inside   *netlink.Handle // speaks netlink in the private namespace
	repaired Repaired
}

// OpenTrunk takes over the trunk that an earlier process left, or makes it. A trunk with
// another number of queues is made anew. It must run in the node's network namespace.
//
// Errors name the value and its range. A device called lace0 that is not a veth is left
// alone and refused.
func OpenTrunk(c TrunkConfig) (*Trunk, error) {
	if c.Queues < 1 || c.Queues > MaxQueues {
		return nil, fmt.Errorf("trunk of %d queues: want 1 to %d", c.Queues, MaxQueues)
	}
	if c.MTU < minTrunkMTU || c.MTU > MaxTrunkMTU {
		return nil, fmt.Errorf("trunk MTU %d: want %d to %d, which is what XDP carries in one page; give pods and uplinks an MTU in that range", c.MTU, minTrunkMTU, MaxTrunkMTU)
	}
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	ns, made, err := openNamespace(namespacePath(c.StateDir))
	if err != nil {
		return nil, err
	}
	t := &Trunk{MAC: lace0MAC, Queues: c.Queues, MTU: c.MTU, ns: ns, repaired: c.Repaired}
	if err := t.open(made, log); err != nil {
		return nil, errors.Join(fmt.Errorf("trunk: %w", err), t.Close())
	}
	return t, nil
}

func namespacePath(stateDir string) string { return filepath.Join(stateDir, "trunk.netns") }

func (t *Trunk) open(made bool, log *slog.Logger) (err error) {
	if t.inside, err = netlink.NewHandleAt(netns.NsHandle(t.ns.file.Fd()), unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("netlink in the private namespace: %w", err)
	}
	ours, err := t.find()
	if err != nil {
		return err
	}
	if !ours {
		if !made {
			log.Info("the trunk was incomplete or has another number of queues, making it anew")
		}
		if err := t.make(); err != nil {
			return err
		}
	}
	if err := t.setUpLace1(); err != nil {
		return err
	}
	return t.setUpLace0()
}

// find looks for the pair and reports whether it can be taken over.
func (t *Trunk) find() (bool, error) {
	l0, err := linkByName(lace0)
	if l0 == nil || err != nil {
		return false, err
	}
	if l0.Type() != "veth" {
		return false, fmt.Errorf("a device called %s exists and is a %s, not Lace's veth: rename or remove it", lace0, l0.Type())
	}
	var l1 netlink.Link
	err = t.Do(func() (err error) {
		l1, err = linkByName(lace1)
		return err
	})
	if l1 == nil || err != nil {
		return false, err
	}
	a, b := l0.Attrs(), l1.Attrs()
	paired := a.ParentIndex == b.Index && b.ParentIndex == a.Index
	t.Lace0, t.Lace1 = a.Index, b.Index
	return paired && t.hasQueues(a) && t.hasQueues(b) && [6]byte(a.HardwareAddr) == lace0MAC, nil
}

func (t *Trunk) hasQueues(a *netlink.LinkAttrs) bool {
	return a.NumTxQueues == t.Queues && a.NumRxQueues == t.Queues
}

// linkByName returns nil when there is none.
func linkByName(name string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return l, nil
}

func (t *Trunk) make() error {
	if err := t.removePair(); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = lace0, t.MTU, lace0MAC[:]
	attrs.NumTxQueues, attrs.NumRxQueues = t.Queues, t.Queues
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerHardwareAddr, v.PeerMTU = lace1, lace1MAC[:], uint32(t.MTU)
	v.PeerNumTxQueues, v.PeerNumRxQueues = uint32(t.Queues), uint32(t.Queues)
	v.PeerNamespace = netlink.NsFd(t.ns.file.Fd())
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("making %s and %s: %w", lace0, lace1, err)
	}
	_, err := t.find()
	return err
}

// removePair removes what is left of an earlier trunk. One end takes the other with it.
func (t *Trunk) removePair() error {
	if err := removeLink(lace0); err != nil {
		return err
	}
	return t.Do(func() error { return removeLink(lace1) })
}

func removeLink(name string) error {
	l, err := linkByName(name)
	if l == nil || err != nil {
		return err
	}
	if err := netlink.LinkDel(l); err != nil {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}

func (t *Trunk) setUpLace1() error {
	return t.Do(func() error { return setUp(t.Lace1, lace1, t.MTU) })
}

// setUpLace0 makes lace0 quiet, and the kernel finish packets on their way to Go: without
// checksum offload it completes partial checksums and cuts large packets to size.
func (t *Trunk) setUpLace0() error {
	if err := setOffload(lace0, getTxChecksum, setTxChecksum, 0); err != nil {
		return err
	}
	if err := setOffload(lace0, getGRO, setGRO, 1); err != nil {
		return err
	}
	// Replies to the node come in here from service addresses.
	for _, name := range []string{"net/ipv4/conf/lace0/rp_filter", "net/ipv6/conf/lace0/accept_ra"} {
		if err := sysctl(name, "0"); err != nil {
			return err
		}
	}
	return setUp(t.Lace0, lace0, t.MTU)
}

// setUp configures a device of the calling thread's namespace: no addresses of its own, no
// neighbour discovery, the right MTU.
func setUp(ifindex int, name string, mtu int) error {
	l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: ifindex, Name: name}}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"MTU", func() error { return netlink.LinkSetMTU(l, mtu) }},
		{"no IPv6 addresses", func() error { return netlink.LinkSetIP6AddrGenMode(l, genModeNone) }},
		{"no ARP", func() error { return netlink.LinkSetARPOff(l) }},
		{"up", func() error { return netlink.LinkSetUp(l) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %s: %w", name, step.what, err)
		}
	}
	return nil
}

// Do runs f on a thread inside the private namespace: sockets made there, and links looked
// up there, are lace1's. f must not start goroutines that count on it.
func (t *Trunk) Do(f func() error) error { return t.ns.do(f) }

// Dropped is the number of packets that the trunk itself has lost since it was made: on
// their way to Go, mostly because lace1's receive ring was full, and on their way back from
// there, because lace0's was or the device was down.
func (t *Trunk) Dropped() (toGo, fromGo uint64, err error) {
	outer, err := netlink.LinkByIndex(t.Lace0)
	if err != nil {
		return 0, 0, fmt.Errorf("device %s: %w", lace0, err)
	}
	inner, err := t.inside.LinkByIndex(t.Lace1)
	if err != nil {
		return 0, 0, fmt.Errorf("device %s: %w", lace1, err)
	}
	return outer.Attrs().Statistics.TxDropped, inner.Attrs().Statistics.TxDropped, nil
}

// Close lets go of the trunk, which stays.
func (t *Trunk) Close() error {
	if t.inside != nil {
		t.inside.Close()
	}
	return t.ns.close()
}

// Remove closes the trunk and removes devices, namespace and file.
func (t *Trunk) Remove() error {
	err := errors.Join(t.removePair(), t.ns.close())
	return errors.Join(err, dismount(t.ns.path))
}

// RemoveTrunk removes the trunk that a process with this state directory left, if any.
func RemoveTrunk(stateDir string) error {
	n, err := enterable(namespacePath(stateDir))
	if err == nil {
		return (&Trunk{ns: n}).Remove()
	}
	l, err := linkByName(lace0)
	if err != nil {
		return err
	}
	if l != nil && l.Type() == "veth" {
		err = removeLink(lace0)
	}
	return errors.Join(err, dismount(namespacePath(stateDir)))
}
