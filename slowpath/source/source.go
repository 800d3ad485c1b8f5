// Package source is where declared objects come from: a stream of whole objects into
// a Sink, whatever they are read from.
//
// It owns the vocabulary between a source and its reader and no behaviour. A source
// delivers each object whole, in any order and as often as it likes; what a change
// means is the reader's business.
package source

import (
	"context"
	"time"

	"lace-cni.io/lace/control/model"
)

// Kind is the kind of an object.
type Kind string

const (
	Service       Kind = "Service"       // *corev1.Service
	EndpointSlice Kind = "EndpointSlice" // *discoveryv1.EndpointSlice
	Node          Kind = "Node"          // *corev1.Node; its Name has no namespace
	ServiceCIDR   Kind = "ServiceCIDR"   // *networkingv1.ServiceCIDR; its Name has no namespace
)

// Change is one object as it is now.
type Change struct {
	Kind    Kind
	Name    model.Name
	Object  any       // typed as Kind says and never changed afterwards; nil: deleted
	Trigger time.Time // when the world changed, as well as the source can know; zero: unknown
}

// Sink takes what a source finds. Its methods are called by one goroutine of the source.
type Sink interface {
	// Apply takes changes that belong together, and everything that the source cannot
	// honour at this moment: problems replaces what was given before, also when changes
	// is empty.
	Apply(changes []Change, problems []model.Problem)

	// Synced is called once, when everything that was there at the start was applied.
	Synced()
}

// Source delivers objects.
type Source interface {
	// Run delivers until ctx ends, and then returns nil; it returns an error only for
	// what waiting cannot mend.
	Run(ctx context.Context, sink Sink) error
}
