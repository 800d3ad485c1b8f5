package table

import (
	"errors"

	"lace-cni.io/lace/fastpath/packet"
)

// Layout is the version of the file layout that this package writes and reads.
const Layout = 1

var (
	// ErrDamaged: the file is not a snapshot, is cut short, or contradicts itself.
	ErrDamaged = errors.New("snapshot is damaged")
	// ErrLayout: the file is a snapshot of a layout that this program does not take.
	ErrLayout = errors.New("snapshot layout is not supported")
)

// Contents is what goes into a snapshot.
type Contents struct {
	Generation uint64
	Created    int64 // nanoseconds since 1970
	Settings   Settings
	Ports      []Port
	Frontends  []Frontend
	BackendIDs []uint32 // runs of it are the sets of the frontends
	Backends   []Backend
	Addresses  []Address
	Routes     []Route
}

// Snapshot is one immutable set of tables.
type Snapshot struct{ c Contents }

func Open(path string) (*Snapshot, error)            { return nil, errors.New("not there yet") }
func Load(b []byte) (*Snapshot, error)               { return nil, errors.New("not there yet") }
func Encode(dst []byte, c *Contents) ([]byte, error) { return nil, errors.New("not there yet") }
func WriteFile(path string, b []byte) error          { return errors.New("not there yet") }
func DefaultSettings() Settings                      { return Settings{} }
func (s *Snapshot) Close() error                     { return nil }
func (s *Snapshot) Contents() Contents               { return s.c }
func (s *Snapshot) Generation() uint64               { return 0 }
func (s *Snapshot) CreatedAt() int64                 { return 0 }
func (s *Snapshot) Settings() *Settings              { return nil }
func (s *Snapshot) Port(id uint16) *Port             { return nil }
func (s *Snapshot) Ports() []Port                    { return nil }
func (s *Snapshot) FrontendByID(id uint32) *Frontend { return nil }
func (s *Snapshot) Frontends() []Frontend            { return nil }
func (s *Snapshot) Set(set Set) []uint32             { return nil }
func (s *Snapshot) Backend(id uint32) *Backend       { return nil }
func (s *Snapshot) Backends() []Backend              { return nil }
func (s *Snapshot) Addresses() []Address             { return nil }
func (s *Snapshot) Routes() []Route                  { return nil }
func (s *Snapshot) Frontend(net packet.NetworkID, addr *packet.Addr, proto uint8, port uint16) *Frontend {
	return nil
}
func (s *Snapshot) IsVIP(net packet.NetworkID, addr *packet.Addr) bool           { return false }
func (s *Snapshot) VIPs(yield func(packet.NetworkID, packet.Addr) bool)          {}
func (s *Snapshot) Address(net packet.NetworkID, addr *packet.Addr) *Address     { return nil }
func (s *Snapshot) Route(net packet.NetworkID, addr *packet.Addr) (uint16, bool) { return 0, false }
