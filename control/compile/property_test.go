package compile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/eligible"
	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/table"
)

// world is what has been set, and the rules that a chain of snapshots has to keep.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	compiler *compile.Compiler
	services map[model.Name]*model.Service
	nodes    map[netip.Addr]bool
	wiring   model.Attachments
	settings table.Settings

	generation uint64
	last       *table.Snapshot
	owners     map[string]string // of the frontends now, and at the last snapshot
	lastOwners map[string]string
	keeps      map[string][]string // backends that may keep flows of a frontend, now and then
	lastKeeps  map[string][]string
	from       map[string]string // who may call a frontend, now and then
	lastFrom   map[string]string
	meanings   map[identity]string // of backends and frontends, ever
	restarted  bool                // since the last snapshot
}

// TestIncrementalEqualsFull runs random edit scripts. After every snapshot the tables
// are what a slow model derives from the declared state, and what a Compiler that begins
// with the same ids makes of the same state set anew in any order; ids and generations
// keep their promises from each snapshot to the next.
func TestIncrementalEqualsFull(t *testing.T) {
	scripts := 2000
	if testing.Short() {
		scripts = 200
	}
	for seed := range scripts {
		w := newWorld(t, uint64(seed))
		for range 30 {
			w.edit()
			if w.rng.IntN(3) == 0 {
				w.publish()
			}
			if w.rng.IntN(12) == 0 && w.last != nil {
				w.restart()
			}
		}
		if t.Failed() {
			t.Fatalf("script with seed %d", seed)
		}
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 99)), compiler: compile.New(nil),
		services: map[model.Name]*model.Service{}, settings: table.DefaultSettings(),
		meanings: map[identity]string{},
	}
}

func (w *world) edit() {
	switch w.rng.IntN(11) {
	case 0, 1:
		n := w.name()
		w.compiler.DeleteService(n)
		delete(w.services, n)
	case 2:
		w.wiring = w.randomWiring()
		w.compiler.SetAttachments(w.wiring)
	case 3:
		w.settings.HalfOpenMax = 1 + w.rng.Uint32N(3)
		w.compiler.SetSettings(w.settings)
	case 4:
		w.nodes = map[netip.Addr]bool{netip.AddrFrom4([4]byte{10, 96, 0, byte(w.rng.IntN(3))}): true}
		w.compiler.SetNodes(w.nodes)
	default:
		s := w.randomService()
		w.compiler.SetService(s)
		w.services[s.Name] = s
	}
}

func (w *world) name() model.Name {
	return model.Name{Namespace: "demo", Name: string(rune('a' + w.rng.IntN(5)))}
}

// randomService draws from few addresses and endpoints, so that Services get in each
// other's way.
func (w *world) randomService() *model.Service {
	s := &model.Service{Name: w.name(), UID: fmt.Sprint(w.rng.IntN(2)), Type: "ClusterIP"}
	if n := w.rng.IntN(4); n > 0 {
		s.Created = time.Unix(int64(n), 0)
	}
	s.InternalPolicy, s.ExternalPolicy = model.Policy(w.rng.IntN(2)), model.Policy(w.rng.IntN(2))
	if w.rng.IntN(3) == 0 {
		s.Affinity = 1 + w.rng.Uint32N(2)
	}
	if n := w.rng.IntN(6); n < 3 {
		s.Sources = map[int][]netip.Prefix{4: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")}[:n]}
	}
	used := map[string]bool{}
	for range 1 + w.rng.IntN(2) {
		p := model.ServicePort{Protocol: []model.Protocol{model.TCP, model.UDP}[w.rng.IntN(2)], Port: 80 + uint16(w.rng.IntN(2)), Families: map[int]model.FamilyChoice{}}
		if used[portKeyOf(p)] {
			continue
		}
		used[portKeyOf(p)] = true
		for fam, addr := range map[int]netip.Addr{4: netip.AddrFrom4([4]byte{10, 96, 0, byte(w.rng.IntN(3))}), 6: netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(w.rng.IntN(3))})} {
			if w.rng.IntN(3) == 0 {
				continue
			}
			kind := model.FrontendKind(w.rng.IntN(4))
			p.Frontends = append(p.Frontends, model.Frontend{Kind: kind, Addr: addr, Port: p.Port, Protocol: p.Protocol})
			if w.rng.IntN(2) == 0 {
				p.Frontends = append(p.Frontends, model.Frontend{Kind: model.NodePort, Addr: twoPods().Ports[0].Addresses[fam/6], Port: 30000 + p.Port, Protocol: p.Protocol})
			}
			eps := eligible.Unique(eligible.Sort(w.randomEndpoints(fam)))
			p.Families[fam] = model.FamilyChoice{
				Endpoints: eps,
				Internal:  eligible.Select(eps, eligible.Query{Policy: s.InternalPolicy, Node: here}),
				External:  eligible.Select(eps, eligible.Query{Policy: s.ExternalPolicy, Node: here}),
				Cluster:   eligible.Select(eps, eligible.Query{Node: here}),
			}
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

func portKeyOf(p model.ServicePort) string { return fmt.Sprint(p.Port, p.Protocol) }

func (w *world) randomEndpoints(fam int) (out []model.Endpoint) {
	for range w.rng.IntN(5) {
		a := netip.AddrFrom4([4]byte{10, 244, 0, byte(w.rng.IntN(6))})
		if fam == 6 {
			a = netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 15: byte(w.rng.IntN(6))})
		}
		if w.rng.IntN(8) == 0 { // what may be the address of a Service
			a = netip.AddrFrom4([4]byte{10, 96, 0, byte(w.rng.IntN(3))})
			if fam == 6 {
				a = netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(w.rng.IntN(3))})
			}
		}
		bits := w.rng.IntN(8)
		out = append(out, model.Endpoint{
			Addr: a, Port: 8080, Node: []string{"n1", "n2"}[w.rng.IntN(2)],
			Ready: bits&1 != 0, Serving: bits&2 != 0, Terminating: bits&4 != 0,
		})
	}
	return out
}

func (w *world) randomWiring() model.Attachments {
	a := twoPods()
	for i := range a.Routes {
		a.Routes[i].Port = 4 + uint16(w.rng.IntN(2))
	}
	if w.rng.IntN(2) == 0 {
		a.Ports[1].PeerMAC[5] = byte(w.rng.IntN(3))
	}
	if w.rng.IntN(2) == 0 {
		a.Ports[1].Addresses, a.Ports[2].Addresses = a.Ports[2].Addresses, a.Ports[1].Addresses
	}
	if w.rng.IntN(3) == 0 { // what may be the address of a Service
		at := w.rng.IntN(3)
		a.Ports[at].Addresses = append(slices.Clone(a.Ports[at].Addresses), netip.AddrFrom4([4]byte{10, 96, 0, byte(w.rng.IntN(3))}))
	}
	if w.rng.IntN(3) == 0 {
		a.Ports = slices.Delete(a.Ports, 1, 2)
	}
	return a
}

func (w *world) publish() {
	w.generation += 1 + uint64(w.rng.IntN(3))
	s := snapshot(w.t, w.compiler, w.generation)
	diff(w.t, "tables against the slow model", w.model(), described(s))
	w.compareWithFull(s)
	w.checkIdentities(s)
	w.last, w.lastOwners, w.lastKeeps, w.lastFrom, w.restarted = s, w.owners, w.keeps, w.from, false
}

// compareWithFull sets everything anew in a random order, from the ids of s.
func (w *world) compareWithFull(s *table.Snapshot) {
	c := compile.New(s)
	c.Recall(w.compiler)
	w.setAll(c)
	full := snapshot(w.t, c, w.generation)
	diff(w.t, "a full rebuild with the same ids", tables(s), tables(full))
	diff(w.t, "Problems of a full rebuild", w.compiler.Problems(), c.Problems())
	diff(w.t, "what is lost in a full rebuild", w.compiler.Lost(), c.Lost())
}

func (w *world) setAll(c *compile.Compiler) {
	names := slices.Collect(maps.Keys(w.services))
	w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, n := range names {
		c.SetService(w.services[n])
	}
	c.SetAttachments(w.wiring)
	c.SetNodes(w.nodes)
	c.SetSettings(w.settings)
}

// restart begins again from the last snapshot.
func (w *world) restart() {
	w.compiler = compile.New(w.last)
	w.setAll(w.compiler)
	w.restarted = true
	w.lastKeeps = map[string][]string{}
	for _, f := range w.last.Frontends() {
		k := fmt.Sprint(f.Addr, f.Port, f.Protocol)
		for _, id := range w.last.Keep(&f) {
			b := w.last.Backend(id)
			w.lastKeeps[k] = append(w.lastKeeps[k], fmt.Sprint(b.Addr, b.Port, b.Protocol))
		}
	}
}

// view is a snapshot without ids and generations.
type view struct {
	Frontends map[string]string
	Backends  map[string]string
	Settings  table.Settings
	Routes    []string
	Addresses []string
}

func described(s *table.Snapshot) view {
	v := view{Frontends: map[string]string{}, Backends: map[string]string{}, Settings: *s.Settings()}
	for _, f := range s.Frontends() {
		v.Frontends[fmt.Sprint(f.Addr, f.Port, f.Protocol)] = describe(s, &f)
	}
	for _, b := range s.Backends() {
		v.Backends[fmt.Sprint(b.Addr, b.Port, b.Protocol)] = fmt.Sprint(b.Serving)
	}
	for _, a := range s.Addresses() {
		v.Addresses = append(v.Addresses, fmt.Sprint(a.Addr, a.Port))
	}
	for _, r := range s.Contents().Routes {
		v.Routes = append(v.Routes, fmt.Sprint(&r, r.Port))
	}
	slices.Sort(v.Addresses)
	slices.Sort(v.Routes)
	return v
}

func describe(s *table.Snapshot, f *table.Frontend) string {
	from := "all"
	if f.Flags&table.Restricted != 0 {
		from = "some"
		for _, r := range s.Sources(f) {
			from += " " + r.First.String()
		}
	}
	text := fmt.Sprintf("narrow=%v affinity=%d from=%s", f.Flags&table.Narrow != 0, f.Affinity, from)
	for _, set := range []table.Set{f.Inside, f.Outside} {
		text += fmt.Sprintf(" | %d", set.Empty)
		for _, id := range s.Set(set) {
			text += " " + s.Backend(id).Addr.String()
		}
	}
	text += " | keep"
	for _, id := range s.Keep(f) {
		text += " " + s.Backend(id).Addr.String()
	}
	return text
}

// model derives the same from what is declared, with no thought of cost.
func (w *world) model() view {
	v := view{Frontends: map[string]string{}, Backends: map[string]string{}, Settings: w.settings}
	w.owners, w.keeps, w.from = map[string]string{}, map[string][]string{}, map[string]string{}
	claims := w.claims()
	holders := map[string]wish{}
	vips := map[netip.Addr]bool{}
	for k, wishes := range claims {
		wishes = slices.DeleteFunc(slices.Clone(wishes), w.void)
		if len(wishes) == 0 {
			continue
		}
		holders[k] = w.holder(k, wishes)
		if !w.narrow(holders[k]) {
			vips[holders[k].frontend.Addr] = true
		}
	}
	for k, h := range holders {
		v.Frontends[k], w.owners[k], w.keeps[k], w.from[k] = w.offer(h, vips), h.owner(), h.keeps(), h.from()
	}
	for _, wishes := range claims {
		for _, l := range wishes {
			l.modelBackends(&v, vips)
		}
	}
	for _, p := range w.wiring.Ports {
		for _, a := range p.Addresses {
			v.Addresses = append(v.Addresses, fmt.Sprint(a, p.ID))
		}
	}
	for _, r := range w.wiring.Routes {
		v.Routes = append(v.Routes, fmt.Sprintf("route %s in network 0 %d", r.Prefix, r.Port))
	}
	if w.wiring.Node4.IsValid() {
		v.Settings.NodeAddr4, v.Settings.NodeAddr6 = packetAddr(w.wiring.Node4.String()), packetAddr(w.wiring.Node6.String())
	}
	slices.Sort(v.Addresses)
	slices.Sort(v.Routes)
	return v
}

// checkIdentities holds ids and generations to their promises.
func (w *world) checkIdentities(s *table.Snapshot) {
	before := map[string]table.Backend{}
	if w.last != nil {
		for _, b := range w.last.Backends() {
			before[fmt.Sprint(b.Addr, b.Port, b.Protocol)] = b
		}
	}
	for _, b := range s.Backends() {
		k := fmt.Sprint(b.Addr, b.Port, b.Protocol)
		was, known := before[k]
		left := b.Serving == 1 && w.left(s, k)
		if known && (was.ID != b.ID || (was.Generation != b.Generation) != (was.Serving != b.Serving || left)) {
			w.t.Errorf("backend %s went from %+v to %+v, left a frontend: %v; the id stays, and the generation changes with serving and with that", k, was, b, left)
		}
		w.mean(identity{b.ID, b.Generation}, "backend "+k)
	}
	for _, f := range s.Frontends() {
		k := fmt.Sprint(f.Addr, f.Port, f.Protocol)
		w.mean(identity{f.ID | 1<<31, f.Generation}, fmt.Sprint("frontend ", k))
		if w.last == nil {
			continue
		}
		was := w.last.Frontend(f.Network, &f.Addr, f.Protocol, f.Port)
		if was == nil {
			continue
		}
		if was.ID != f.ID {
			w.t.Errorf("frontend %s went from id %d to %d", k, was.ID, f.ID)
		}
		if anew := w.anew(k); (was.Generation != f.Generation) != anew {
			w.t.Errorf("frontend %s went from %+v to %+v; to another Service or other sources: %v, and its generation changes with that alone", k, was, f, anew)
		}
	}
}

// passed says whether a frontend has another Service, as far as the Compiler can know.
func (w *world) passed(frontend string) bool {
	return !w.restarted && w.owners[frontend] != w.lastOwners[frontend]
}

// anew says whether all flows of a frontend must be looked at again.
func (w *world) anew(frontend string) bool {
	return w.passed(frontend) || w.from[frontend] != w.lastFrom[frontend]
}

// left says whether a backend might keep flows of some frontend and may not any more.
func (w *world) left(s *table.Snapshot, backend string) bool {
	for _, f := range s.Frontends() {
		k := fmt.Sprint(f.Addr, f.Port, f.Protocol)
		if !w.anew(k) && slices.Contains(w.lastKeeps[k], backend) && !slices.Contains(w.keeps[k], backend) {
			return true
		}
	}
	return false
}

// mean notes what an identity means, for good.
func (w *world) mean(id identity, what string) {
	if was, known := w.meanings[id]; known && was != what {
		w.t.Errorf("%v means %s and meant %s", id, what, was)
	}
	w.meanings[id] = what
}
