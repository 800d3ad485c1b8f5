package adminserver

import (
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/table"
	"lace-cni.io/lace/slowpath/adminserver/api"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
	"lace-cni.io/lace/xdp"
)

// Node is what there is to ask about. Its methods are called from any goroutine.
type Node interface {
	// Status is the state of agent and fast path at this moment.
	Status() api.Status
	// State is what was published last; nil before the first publication.
	State() *publish.State
	// Place is where the object of a Problem is written; zero: nobody knows.
	Place(p model.Problem) source.Place
	// Tables opens the snapshot that was published last. The caller closes it.
	Tables() (*table.Snapshot, error)
	// Counts reads the packet counters; nil where they cannot be read.
	Counts() (*counter.Totals, *xdp.Counters)
	// Flows opens the flow table that the fast path and the kernel share, to read. The
	// caller closes it.
	Flows() (FlowTable, error)
	// Ranges are the service ranges that the node routes to Lace.
	Ranges() []netip.Prefix
	// Leaves names the device by which the node's own packets to an address leave; empty:
	// there is no route.
	Leaves(to netip.Addr) (device string, err error)
}

// FlowTable is a view of registered flows; conntrack.Reader has these methods.
type FlowTable interface {
	Range(visit func(*conntrack.Flow) bool)
	Peer(f, out *conntrack.Flow) bool
	Counts() conntrack.Counts
	Close() error
}
