package xdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// mirror is what a map holds, kept here as well so that a sync writes only what changed.
// K and V are laid out as in the kernel, without padding. The zero V is an absent entry of
// an array.
type mirror[K, V comparable] struct {
	name string
	m    *ebpf.Map
	have map[K]V
}

func newMirror[K, V comparable](name string, m *ebpf.Map) mirror[K, V] {
	return mirror[K, V]{name: name, m: m, have: map[K]V{}}
}

// read fills the mirror from the map, some hundred entries per system call.
func (r *mirror[K, V]) read() error {
	const batch = 1024
	var zero V
	var cursor ebpf.MapBatchCursor
	keys, values := make([]K, batch), make([]V, batch)
	for {
		n, err := r.m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			if values[i] != zero {
				r.have[keys[i]] = values[i]
			}
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading pinned map %s: %w", r.name, err)
		}
	}
}

// put adds and changes what differs. It goes on after an error.
func (r *mirror[K, V]) put(want map[K]V) error {
	var errs []error
	for k, v := range want {
		if have, ok := r.have[k]; ok && have == v {
			continue
		}
		if err := r.m.Put(k, v); err != nil {
			errs = append(errs, fmt.Errorf("%s: %v (%d of %d entries in use): %w", r.name, k, len(r.have), r.m.MaxEntries(), err))
			continue
		}
		r.have[k] = v
	}
	return first(errs)
}

// trim removes what is not wanted. It goes on after an error.
func (r *mirror[K, V]) trim(want map[K]V) error {
	var errs []error
	for k := range r.have {
		if _, ok := want[k]; ok {
			continue
		}
		if err := r.remove(k); err != nil {
			errs = append(errs, fmt.Errorf("%s: removing %v: %w", r.name, k, err))
			continue
		}
		delete(r.have, k)
	}
	return first(errs)
}

func (r *mirror[K, V]) remove(k K) error {
	if r.m.Type() == ebpf.Array {
		var zero V
		return r.m.Put(k, zero)
	}
	err := r.m.Delete(k)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// first keeps a full map from filling the log with a line for each entry.
func first(errs []error) error {
	if len(errs) > 1 {
		return fmt.Errorf("%w (and %d more)", errs[0], len(errs)-1)
	}
	return errors.Join(errs...)
}
