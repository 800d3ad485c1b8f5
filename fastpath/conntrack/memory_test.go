package conntrack

import (
	"bytes"
	"math/rand/v2"
)

// memory is what a table is mapped from.
type memory struct{ slots, tags []byte }

// newMemory has room for that many slots, header included. Go aligns slices of 16 bytes
// and more to words, large ones to pages.
func newMemory(slots int) memory {
	return memory{make([]byte, slots*SlotSize), make([]byte, BucketsIn(slots)*TagSize)}
}

func (m memory) open() (*Table, Report, error) { return Map(m.slots, m.tags) }
func (m memory) view() (*Reader, error)        { return View(m.slots, m.tags) }
func (m memory) clone() memory                 { return memory{bytes.Clone(m.slots), bytes.Clone(m.tags)} }
func (m memory) equal(o memory) bool {
	return bytes.Equal(m.slots, o.slots) && bytes.Equal(m.tags, o.tags)
}

// scramble leaves tags that mean nothing.
func (m memory) scramble(r *rand.Rand) {
	for i := range m.tags {
		m.tags[i] = byte(r.Uint32())
	}
}

func (m memory) slot(n uint32) []byte { return m.slots[n*SlotSize:][:SlotSize] }
