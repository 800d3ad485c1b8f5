package table

// Contents is everything that goes into a snapshot, in any order. Encode takes it
// apart; Snapshot.Contents gives it back.
type Contents struct {
	Generation uint64 // grows by one with every snapshot of a node
	Created    int64  // nanoseconds since 1970
	Settings   Settings
	Ports      []Port     // unique by ID
	Frontends  []Frontend // unique by ID and by network, address, protocol and port
	BackendIDs []uint32   // the sets of the frontends are runs of it and may share them
	Ranges     []Range    // the sources of restricted frontends are runs of it and may share them
	Backends   []Backend  // unique by ID
	Addresses  []Address  // unique by network and address
	Routes     []Route    // unique by network and prefix
}
