// Package kube is a source that reads an API server: it keeps lists and watches of what
// this node needs, and delivers every object whole.
//
// It owns which objects are asked for and with which selectors, which API server is
// asked, and what is left of an object before it is kept. It must never deliver less
// than everything as the beginning, and must never take something away because an API
// server does not answer: what was delivered stands until a server says otherwise. It
// writes nothing: a Teller does, Events about Problems of Services and no more.
//
// Only what somebody reads is watched: Services and EndpointSlices that are not labelled
// away, Nodes, whose addresses no Service may take, and ServiceCIDRs when the service ranges are not given.
// The labels of the opt-outs are selectors at the server, so that a label that comes
// looks like a deletion and one that goes like a creation. A Service all of whose slices
// are labelled is left alone, whereas one without any is refused; so the names of
// labelled slices are watched too, without their contents.
//
// API servers are given by address and tried in turn. None of them may be a Service
// that Lace serves: after a restart of the node it would be waited for in vain.
//
// Time: an API server that is gone is tried about twice a second, a connection that is
// silent is asked for a sign of life after 1.5 s and given up 2 s later, so that a node
// equals the API within 5 s after the server's return, however long it was away. A
// watch that breaks goes on where it was; a server that has forgotten that place sends
// everything anew, and the difference is delivered.
//
// Cost: one goroutine and one stream for each kind on one connection; the objects are
// kept once, by whoever takes them, trimmed to what is read, here only their versions.
//
// Flow: server → reflector → trim → shelf (what changed, what is stale) → Sink.
package kube
