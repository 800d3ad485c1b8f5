// Package counter is the file in which the fast path counts and from which others read.
//
// It owns the layout of <state-dir>/counters: a header with the shape and the gauges of
// the node, then one block per worker with packets and bytes by reason, events, a
// heartbeat and the black holes that the worker knows. Blocks are padded to cache lines, so that workers do not slow each other.
//
// It must never decide anything, block a worker, need a lock between workers, or depend on
// what others do to the file: the counts live in the process's own memory and are written
// to the file, never mapped from it, so that truncating it costs a reader one look and the
// fast path nothing. A reader in another process costs the writer nothing.
//
// Cost: counting is two additions in the worker's own memory; Publish, once per batch, is
// a comparison, and a write of the worker's block every 20 ms, some 0.4 us.
//
// Flow: worker → Block.Count → Block.Publish → file → Reader.Totals → metrics, `lace get`.
//
// The counts go on when the fast path is started again with the same shape, so that a
// scraper sees no reset, but for what a killed worker had not written yet: 20 ms of counts
// under load, 100 ms when it had just come to rest; a file of another shape is replaced by a new one.
package counter
