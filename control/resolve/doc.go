// Package resolve turns Kubernetes objects into what they mean for Services on one
// node: objects in, model.Service and model.Problem out.
//
// It owns the reading of Service, EndpointSlice and Node: what is proxied at all,
// which addresses and ports a Service has, which endpoints belong to which port. What
// of these endpoints is used is decided by control/eligible. It must never do I/O, keep
// time, change an object it is given, or panic, whatever the object holds: objects may
// come from a file that no API server has validated, so the defaults of the API are
// applied here too.
//
// What cannot be honoured becomes a Problem that names object, field and remedy, and
// costs nothing but itself: the other endpoints, ports, families and Services go on.
//
// Cost: linear in the endpoints of one Service, times its ports.
package resolve
