package counter

import (
	"errors"
	"fmt"
	"unsafe"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/reason"
)

// Layout is the version of the file's layout. A reader takes exactly this one; new
// reasons, events and gauges do not change it, because their numbers are in the header.
const Layout = 1

// MaxWorkers bounds the number of blocks in a file.
const MaxWorkers = 256

// ErrLayout is wrapped by the error about a file that is no counter file of this layout.
var ErrLayout = errors.New("not a counter file of this layout")

const magic = 0x31544e434543414c // "LACECNT1" read as little-endian

// Words of the header. The shape is six words, the gauges follow.
const (
	wordMagic = iota
	wordLayout
	wordWorkers
	wordReasons
	wordEvents
	wordGauges
	wordStride
	wordHoles
	firstGauge = 8
	headerSize = 64 // words; room for gauges to come
)

const (
	wordBytes = 8
	line      = 16 // words in two cache lines, the unit of the adjacent-line prefetcher
	maxNames  = 256
	maxSize   = 1 << 26 // bytes of a file
)

// shape says where everything lies in a file, in words of eight bytes.
type shape struct {
	workers, reasons, events, gauges, stride, holes int
}

func newShape(workers int) shape {
	s := shape{workers: workers, reasons: int(reason.Count), events: int(Events), gauges: int(Gauges), holes: blackhole.Holes}
	s.stride = (s.used() + line - 1) / line * line
	return s
}

// used is the number of words of a block before padding: packets and bytes of every
// reason, the events, the heartbeat, the black holes.
func (s shape) used() int { return s.beat(0) - s.block(0) + 1 + s.holes*holeWords }

func (s shape) words() int       { return headerSize + s.workers*s.stride }
func (s shape) block(i int) int  { return headerSize + i*s.stride }
func (s shape) event(i int) int  { return s.block(i) + 2*s.reasons }
func (s shape) beat(i int) int   { return s.event(i) + s.events }
func (s shape) hole(i int) int   { return s.beat(i) + 1 }
func (s shape) packet(i int) int { return s.block(i) }
func (s shape) byteAt(i int) int { return s.block(i) + s.reasons }

// readShape takes the shape from a header and checks it against the size of the file,
// so that no later access can lie outside.
func readShape(words []uint64) (shape, error) {
	if len(words) < headerSize || words[wordMagic] != magic {
		return shape{}, fmt.Errorf("%w: the magic number is missing", ErrLayout)
	}
	if words[wordLayout] != Layout {
		return shape{}, fmt.Errorf("%w: layout %d, this program takes %d", ErrLayout, words[wordLayout], Layout)
	}
	for _, n := range words[wordWorkers:firstGauge] {
		if n > 1<<20 {
			return shape{}, fmt.Errorf("%w: the header holds the impossible size %d", ErrLayout, n)
		}
	}
	s := shape{
		workers: int(words[wordWorkers]), reasons: int(words[wordReasons]), events: int(words[wordEvents]),
		gauges: int(words[wordGauges]), stride: int(words[wordStride]),
		holes: int(words[wordHoles]),
	}
	fits := s.workers <= MaxWorkers && s.reasons <= maxNames && s.events <= maxNames && s.holes <= maxNames &&
		s.gauges <= headerSize-firstGauge && s.stride >= s.used() && s.words() <= len(words)
	if !fits {
		return shape{}, fmt.Errorf("%w: %d workers of %d words do not fit in %d words", ErrLayout, s.workers, s.stride, len(words))
	}
	return s, nil
}

func (s shape) write(words []uint64) {
	words[wordLayout] = Layout
	words[wordWorkers] = uint64(s.workers)
	words[wordReasons] = uint64(s.reasons)
	words[wordEvents] = uint64(s.events)
	words[wordGauges] = uint64(s.gauges)
	words[wordStride] = uint64(s.stride)
	words[wordHoles] = uint64(s.holes)
	words[wordMagic] = magic
}

// asBytes looks at words as the bytes they are written as.
func asBytes(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*wordBytes)
}
