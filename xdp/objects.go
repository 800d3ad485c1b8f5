package xdp

import (
	"errors"
	"log/slog"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/fastpath/table"
)

var errSkeleton = errors.New("not written yet")

// Config of the loader.
type Config struct {
	BPFFS     string       // a mounted BPF file system; everything goes under <BPFFS>/lace
	FlowSlots int          // flow table slots wanted; rounded up by conntrack.RoundSlots
	Log       *slog.Logger // nil: slog.Default
}

// Objects are the loaded programs and maps.
type Objects struct{}

// Opened says what Open found.
type Opened struct {
	Kept      bool     // the flow table of an earlier process was taken over
	Replaced  []string // pinned maps that were damaged, foreign or of another layout or size, and were started afresh
	LostFlows int      // flows that went with a replaced flow table
}

func Open(Config) (*Objects, error)                      { return nil, errSkeleton }
func (o *Objects) Opened() Opened                        { return Opened{} }
func (o *Objects) FlowMemory() []byte                    { return nil }
func (o *Objects) SetFlowKeys(k [10]uint32, n int) error { return errSkeleton }
func (o *Objects) SyncPorts(ports []table.Port) error    { return errSkeleton }
func (o *Objects) SyncSources(a []table.Address) error   { return errSkeleton }
func (o *Objects) SyncClaims(c []Claim) error            { return errSkeleton }
func (o *Objects) TrimClaims(c []Claim) error            { return errSkeleton }
func (o *Objects) AttachTrunk(t *Trunk) error            { return errSkeleton }
func (o *Objects) Mode() Mode                            { return Native }
func (o *Objects) SetSocket(queue, fd int) error         { return errSkeleton }
func (o *Objects) Counters() (Counters, error)           { return Counters{}, errSkeleton }
func (o *Objects) Close() error                          { return nil }
func Cleanup(bpffs string) error                         { return errSkeleton }
func OpenCounters(bpffs string) (*CounterReader, error)  { return nil, errSkeleton }

// Claim is a destination whose packets are Lace's. Protocol 0 claims the whole address.
type Claim struct {
	Network  packet.NetworkID
	Addr     packet.Addr
	Protocol uint8
	Port     uint16 // host order; 0 with Protocol 0
}

// Mode of XDP on the trunk.
type Mode string

const (
	Native  Mode = "native"
	Generic Mode = "generic"
)

// Count is packets and bytes, Ethernet headers included.
type Count struct{ Packets, Bytes uint64 }

// Counters of the BPF programs since the maps were made.
type Counters struct {
	Reasons  [reason.Count]Count // not-claimed: left to the kernel
	Claimed  Count
	Punted   Count
	Injected Count
}

// CounterReader reads the counters of another process, read-only.
type CounterReader struct{}

func (r *CounterReader) Counters() (Counters, error) { return Counters{}, errSkeleton }
func (r *CounterReader) Close() error                { return nil }

// TrunkConfig of the veth pair.
type TrunkConfig struct {
	StateDir string // holds trunk.netns
	Queues   int    // one per worker
	MTU      int    // at least the largest MTU of pods and uplinks, at most MaxTrunkMTU
	Log      *slog.Logger
}

// Trunk is the veth pair.
type Trunk struct {
	Lace0, Lace1 int     // interface indexes; Lace1's is one of the private namespace
	MAC          [6]byte // of lace0: destination of every frame on the trunk
	Queues, MTU  int
}

func OpenTrunk(TrunkConfig) (*Trunk, error) { return nil, errSkeleton }
func (t *Trunk) Do(f func() error) error    { return errSkeleton }
func (t *Trunk) Close() error               { return nil }
func (t *Trunk) Remove() error              { return errSkeleton }
func RemoveTrunk(stateDir string) error     { return errSkeleton }

// MaxTrunkMTU is what plain XDP on a veth carries with 4 KiB pages.
const MaxTrunkMTU = 3506
