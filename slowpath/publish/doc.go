// Package publish keeps a node's snapshot in line with the declared objects and with
// what is attached to the node.
//
// It owns the objects, the compiler and the snapshot file, and what was published last,
// for everybody who wants to show it. It must never publish before the source has
// delivered everything once and the attachments are known: a half-read state would take
// endpoints and ports away from connections that live. It must never stop for one
// object that is wrong: that is a Problem, and the others go on.
//
// Changes are coalesced by object, so that no burst grows the queue beyond the number of
// objects, and a publication waits a moment for changes that belong together. The
// snapshot is written only when the tables differ; the generation grows by one each
// time, over restarts too. A file that somebody else removes or changes is found by one
// stat call a second and written again.
//
// Cost: one goroutine. A change costs its Service, and then a snapshot: see the
// benchmarks here and in control/compile.
//
// Flow: Apply and SetAttachments → inbox → (settle) → objects → resolve what was touched
// → compile → write → State.
package publish
