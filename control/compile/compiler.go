package compile

import (
	"net/netip"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// Compiler holds what was set and what was published. Make one with New.
type Compiler struct {
	services  map[model.Name]*service
	frontends map[key]*frontend
	backends  map[key]*backend

	frontendIDs ids[frontend]
	backendIDs  ids[backend]

	dirtyFrontends []*frontend
	dirtyBackends  []*backend
	contested      map[*frontend]struct{} // those with several claims
	refused        map[*frontend]struct{} // those with claims to what nobody may have
	disputes       disputes

	residents map[spot]resident
	nodes     map[netip.Addr]bool // addresses of the nodes of the cluster

	reserved      map[netip.AddrPort]bool // what API servers listen on, TCP
	reservedSpots map[spot]bool
	own           ownPorts
	endpoints     map[spot]int32                  // how many backends have an address
	balancers     map[spot]map[*frontend]struct{} // those that a balancer's address gives
	hosts         map[spot]bool                   // host routes of somebody else

	vips    map[spot]int          // how many frontends have the whole of an address
	looping map[*backend]struct{} // those at such an address

	notices map[model.Name]model.Problem

	used, limit room
	excluded    exclusion

	wanted, published wiring
	wiringProblems    []model.Problem

	settings, publishedSettings table.Settings

	contents table.Contents // memory that is used again
	listed   map[*offer]lists
	external map[netip.Addr]bool
	file     []byte
	written  bool
}

// New returns a Compiler that goes on from the last snapshot: its ids and generations
// stay with their keys. previous may be nil, is not changed, and is not needed any more
// when New has returned. What the previous snapshot holds is not published again unless
// it is set again; ports and settings are no exception.
func New(previous *table.Snapshot) *Compiler {
	c := &Compiler{
		services:  map[model.Name]*service{},
		frontends: map[key]*frontend{},
		backends:  map[key]*backend{},
		contested: map[*frontend]struct{}{},
		refused:   map[*frontend]struct{}{},
		disputes:  disputes{lost: model.Lost{}},
		own:       newOwnPorts(),
		vips:      map[spot]int{},
		endpoints: map[spot]int32{},
		balancers: map[spot]map[*frontend]struct{}{},
		looping:   map[*backend]struct{}{},
		notices:   map[model.Name]model.Problem{},
		listed:    map[*offer]lists{},
		external:  map[netip.Addr]bool{},
		limit:     room{model.MaxFrontends, model.MaxBackends},
		settings:  table.DefaultSettings(),
	}
	if previous != nil {
		c.adopt(previous)
	}
	return c
}

// SetSettings replaces the settings. The node's addresses in them are ignored: they
// come with the attachments.
func (c *Compiler) SetSettings(s table.Settings) { c.settings = s }

// Changed reports whether a snapshot made now would differ from the last one in more
// than its number and time. A backend does not change without a frontend of its Service.
func (c *Compiler) Changed() bool {
	return !c.written || c.rewired() || c.effective() != c.publishedSettings || len(c.dirtyFrontends) > 0
}

// effective is the settings with the node's addresses in them.
func (c *Compiler) effective() table.Settings {
	s := c.settings
	s.NodeAddr4, s.NodeAddr6 = c.wanted.node4, c.wanted.node6
	return s
}

// Problems lists everything that was set and is not honoured, as of the last snapshot,
// sorted by object.
func (c *Compiler) Problems() []model.Problem { return c.problems() }

// Snapshot encodes everything that was set. The generation must be larger than that of
// the snapshot before; created is noted in it. The bytes are valid until the next call.
// An error means that nothing was made, and names the record; it is a mistake in
// settings, since anything else that is wrong becomes a Problem.
func (c *Compiler) Snapshot(generation uint64, created time.Time) ([]byte, []model.Problem, error) {
	c.settle(generation)
	c.assemble()
	c.contents.Generation, c.contents.Created = generation, created.UnixNano()
	b, err := table.Encode(c.file, &c.contents)
	if err != nil {
		c.written = false
		return nil, nil, err
	}
	c.file, c.written = b, true
	return b, c.problems(), nil
}

// settle decides ids and generations for what was touched since the last snapshot.
// Who is served at all comes first, then backends, since frontends ask whether theirs still serve.
func (c *Compiler) settle(generation uint64) {
	c.makeRoom()
	for _, f := range c.dirtyFrontends {
		f.holder = c.award(f)
	}
	c.countVIPs()
	for _, b := range c.dirtyBackends {
		c.settleBackend(b, generation)
	}
	for _, f := range c.dirtyFrontends {
		c.settleFrontend(f, generation)
	}
	c.hear()
	c.dirtyBackends, c.dirtyFrontends = emptied(c.dirtyBackends), emptied(c.dirtyFrontends)
	c.settlePorts(generation)
	c.publishedSettings = c.effective()
}

// fewDirty is how many are remembered without new memory from one snapshot to the next.
const fewDirty = 1 << 10

// emptied lets go of what is gone, and of memory that only the beginning needs.
func emptied[T any](dirty []*T) []*T {
	if cap(dirty) > fewDirty {
		return nil
	}
	clear(dirty)
	return dirty[:0]
}
