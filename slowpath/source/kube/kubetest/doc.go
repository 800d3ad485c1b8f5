// Package kubetest is API servers for tests of what reads them: lists and watches of the
// kinds that a node reads, with label and field selectors, bookmarks, streamed lists and
// forgotten pasts, over HTTP.
//
// A Store is what the cluster holds; several Servers may stand before one Store, each in a
// Mood of its own: failing, lagging, repeating and reordering events, slow, silent. They
// are reached over TCP by Serve, or within a bubble of testing/synctest by a Fabric, which
// loses what it is told to lose.
//
// It must never answer what a real API server would not: a watch goes on where it was or
// says that the past is forgotten, and a list is of one moment.
//
// Cost: a watch walks the log of all writes since the last Compact for each write; tests
// have hundreds, not millions.
package kubetest
