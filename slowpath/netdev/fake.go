package netdev

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// Fake is an in-memory Stack for tests. It behaves like the kernel where attach
// depends on it: an address on an up device brings its connected route, a device
// that goes down loses its routes, one that is removed takes everything with it, and
// what the kernel would refuse is refused with the same named error.
type Fake struct {
	mu         sync.Mutex
	links      map[int]Link
	addresses  []Address
	routes     []Route
	neighbours []Neighbour
	stations   []Station
	peers      map[int]Peer
	offloads   map[string]Offloads
	failures   map[string]error
	watchers   map[chan struct{}]bool
	next       int
}

// NewFake returns a stack with a loopback device and nothing else.
func NewFake() *Fake {
	f := &Fake{
		links:    make(map[int]Link),
		peers:    make(map[int]Peer),
		offloads: make(map[string]Offloads),
		failures: make(map[string]error),
		watchers: make(map[chan struct{}]bool),
	}
	if _, err := f.AddLink(Link{Name: "lo", Up: true, Loopback: true, MTU: 65536}); err != nil {
		panic(err) // a constant that AddLink accepts
	}
	return f
}

// Fail lets every call of the named method return err, until Fail(method, nil).
func (f *Fake) Fail(method string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.failures, method)
		return
	}
	f.failures[method] = err
}

func (f *Fake) fails(method string) error {
	if err := f.failures[method]; err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Links implements Stack.
func (f *Fake) Links() ([]Link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("Links"); err != nil {
		return nil, err
	}
	out := make([]Link, 0, len(f.links))
	for _, l := range f.links {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Link) int { return a.Index - b.Index })
	return out, nil
}

// Addresses implements Stack.
func (f *Fake) Addresses() ([]Address, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.addresses)
	slices.SortStableFunc(out, func(a, b Address) int { return cmp.Compare(a.Device, b.Device) })
	return out, f.fails("Addresses")
}

// Routes implements Stack.
func (f *Fake) Routes() ([]Route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.routes)
	slices.SortStableFunc(out, compareRoutes)
	return out, f.fails("Routes")
}

// Neighbours implements Stack.
func (f *Fake) Neighbours() ([]Neighbour, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.neighbours), f.fails("Neighbours")
}

// Stations implements Stack.
func (f *Fake) Stations() ([]Station, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.stations), f.fails("Stations")
}

// Peer implements Stack: what SetPeer said, ErrUnsupported where it said nothing.
func (f *Fake) Peer(l Link) (Peer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("Peer"); err != nil {
		return Peer{}, err
	}
	p, ok := f.peers[l.Index]
	if !ok {
		return Peer{}, fmt.Errorf("other end of %s: %w", l.Name, ErrUnsupported)
	}
	p.Addresses = slices.Clone(p.Addresses)
	return p, nil
}

// Offloads implements Stack.
func (f *Fake) Offloads(device string) (Offloads, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.byName(device); err != nil {
		return Offloads{}, err
	}
	return f.offloads[device], f.fails("Offloads")
}

// Watch implements Stack.
func (f *Fake) Watch(ctx context.Context) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("Watch"); err != nil {
		return nil, err
	}
	ch := make(chan struct{}, 1)
	f.watchers[ch] = true
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, ch)
		close(ch)
	})
	return ch, nil
}

// notify tells every watcher; the caller holds the lock.
func (f *Fake) notify() {
	for ch := range f.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (f *Fake) byName(name string) (Link, error) {
	for _, l := range f.links {
		if l.Name == name {
			return l, nil
		}
	}
	return Link{}, fmt.Errorf("device %s: %w", name, ErrNotFound)
}

func (f *Fake) byIndex(index int) (Link, error) {
	l, ok := f.links[index]
	if !ok {
		return Link{}, fmt.Errorf("device #%d: %w", index, ErrNotFound)
	}
	return l, nil
}

func (f *Fake) owns(a netip.Addr) bool {
	return slices.ContainsFunc(f.addresses, func(own Address) bool {
		return own.Prefix.Addr() == a && !own.Tentative
	})
}
