// Package counter is the file in which the fast path counts and from which others read.
//
// It owns the layout of <state-dir>/counters: a header with the shape and the gauges of
// the node, then one block per worker with packets and bytes by reason, events and a
// heartbeat. Blocks are padded to cache lines, so that workers do not slow each other.
//
// It must never decide anything, block a worker, or need a lock: each block has one
// writer, every word is written by an atomic store and read by an atomic load. A reader
// in another process costs the writer nothing.
//
// Cost: counting is two additions in the worker's own memory; Publish, once per batch,
// is one store for each word that changed.
//
// Flow: worker → Block.Count → Block.Publish → file → Reader.Totals → metrics, `lace get`.
//
// The counts go on when the fast path is started again with the same shape, so that a
// scraper sees no reset; a file of another shape is replaced by a new one.
package counter
