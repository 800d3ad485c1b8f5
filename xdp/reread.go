package xdp

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"
)

// Reread looks whether the maps hold what this process has written: ports, devices,
// sources, claims, aliases and settings. What somebody else changed is told, and put right here
// (settings, the filter of claims) or by the next SyncPorts, SyncSources, SyncClaims and SyncAliases.
//
// A system call for each thousand entries; some 0.2 ms for each 1,000 claims.
func (o *Objects) Reread() error {
	return errors.Join(
		reread(&o.ports, o.repaired), reread(&o.devices, o.repaired), reread(&o.low, o.repaired),
		reread(&o.sources, o.repaired), reread(&o.claims, o.repaired),
		o.rereadSettings(), o.rereadFilter(), o.rereadAliases())
}

// reread makes the mirror what the map holds.
func reread[K, V comparable](r *mirror[K, V], told Repaired) error {
	now := newMirror[K, V](r.name, r.m)
	if err := now.read(); err != nil {
		return err
	}
	if maps.Equal(now.have, r.have) {
		return nil
	}
	told.tell(PartEntries, fmt.Sprintf("map %s: %d entries, want %d, or others than were written", r.name, len(now.have), len(r.have)))
	r.have = now.have
	return nil
}

func (o *Objects) rereadSettings() error {
	var now settings
	if err := o.bpf.Settings.Lookup(uint32(0), &now); err != nil {
		return fmt.Errorf("pinned settings: %w", err)
	}
	if now == o.settings {
		return nil
	}
	if err := o.bpf.Settings.Update(uint32(0), o.settings, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	o.repaired.tell(PartEntries, "map settings: other values than were written")
	return nil
}

func (o *Objects) rereadFilter() error {
	var now filter
	if err := o.bpf.ClaimFilter.Lookup(uint32(0), &now); err != nil {
		return fmt.Errorf("filter of claimed addresses: %w", err)
	}
	if now == o.claimFilter {
		return nil
	}
	if err := o.setFilter(filterOf(o.claims.have)); err != nil {
		return err
	}
	o.repaired.tell(PartEntries, "map claim_filter: other bits than the claims need")
	return nil
}
