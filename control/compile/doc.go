// Package compile turns resolved Services and the attachments of a node into the tables
// of its fast path: a snapshot.
//
// It owns the ids and the generations in a snapshot, which flows are stamped with:
//
//   - An id stays with its key (network, address, protocol, port) from snapshot to
//     snapshot, over a restart too, since a Compiler begins with the last snapshot. An id
//     whose key is gone rests before it is given away again.
//   - A generation changes when flows decided under the one before must be looked at
//     again: a backend that stops or resumes serving, or leaves one frontend and goes on
//     serving others; a frontend that passes to another Service or admits other clients; a port that comes to
//     mean another device or next hop, or ceases to lead where it led. So the change of
//     one endpoint concerns the flows of that endpoint alone. The new generation is taken
//     from the number of the snapshot, so that it differs from whatever an earlier holder
//     of the id was given.
//
// A snapshot is a function of what was set and of the snapshot before: not of the order
// in which Services were set, nor of what they were in between. Only Services that were
// set since the last snapshot are worked on, and the outcome is the same as if all had
// been set again.
//
// Of several Services with one address and port the one that has it in the snapshot
// before keeps it, unless another is older for certain. An address of a pod of this node is
// never given to a Service; of an address of a node it gets its own ports and no others.
// An endpoint whose address is one of a Service is offered to nobody.
//
// It must never do I/O, keep time, or know Kubernetes. What cannot be honoured is a
// Problem of one object. A Compiler is used by one goroutine at a time.
//
// Cost: setting a Service is linear in its endpoints, however many Services want the same
// addresses. Who has one is decided with the next snapshot, once for all that want it. A
// snapshot writes all records out, which is a few milliseconds for 100,000 backends, see the
// benchmarks.
package compile
