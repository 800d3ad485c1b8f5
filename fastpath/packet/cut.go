package packet

import (
	"encoding/binary"

	"lace-cni.io/lace/fastpath/checksum"
)

// MaxCut is the longest frame that a Cutter takes: more than a chunk of the trunk's sockets
// holds.
const MaxCut = 4096

// Options of the IPv4 header (RFC 791, section 3.1).
const (
	optionEnd    = 0
	optionNoOp   = 1
	optionCopied = 0x80 // to be in every fragment
)

// MayCut reports whether a router whose next hop takes packets of up to mtu bytes may and can
// cut p into fragments: it is IPv4, its sender does not forbid it, all of it is here, and a
// fragment has room for more than headers. For a packet whose last outcome was OK or NoPorts.
func (p *Packet) MayCut(mtu uint32) bool {
	return !p.DontFragment() && !p.Cut && p.End <= MaxCut && p.ip4Header()+8 <= int(mtu)
}

// ip4Header is the length of the IPv4 header, options included, which Parse has checked.
func (p *Packet) ip4Header() int { return int(p.Frame[p.L3]&0x0f) * 4 }

// Cutter cuts a packet into fragments (RFC 791, section 3.2): Begin leaves the first one where
// the packet was and keeps a copy of the rest, which Next hands out. Fragments are as long
// as they may be, in order. The zero value has nothing left. It belongs to one goroutine.
// Each byte is copied twice.
type Cutter struct {
	frame  [MaxCut]byte // the packet, with the headers of later fragments
	l3     int
	from   int // where the payload begins
	at     int // of what is left
	end    int
	size   int // payload of all fragments but the last
	offset int // of the payload's first byte in the datagram
	more   bool
}

// Begin cuts p, for which MayCut, and returns the length of the first fragment's frame. p
// and its frame are that fragment then. A whole packet gets the identification id: its
// sender's need not be unique, for it did not mean to have it cut. A fragment keeps its own.
// What was left of an earlier packet is forgotten.
func (c *Cutter) Begin(p *Packet, mtu uint32, id uint16) int {
	header := p.ip4Header()
	c.l3, c.from, c.end = p.L3, p.L3+header, p.End
	c.size = (int(mtu) - header) &^ 7
	c.offset, c.more = int(p.Offset), p.More
	if p.Fragment {
		id = uint16(p.ID)
	}
	copy(c.frame[:c.end], p.Frame[:p.End])
	end := min(c.from+c.size, c.end)
	c.at = end
	h := p.Frame[p.L3:c.from]
	fragmentHeader(h, c.frame[c.l3:c.from], id, end-c.from, c.offset, end < c.end || c.more)
	p.End, p.Fragment, p.More, p.ID = end, true, end < c.end || c.more, uint32(id)
	laterOptions(c.frame[c.l3:c.from], id)
	return end
}

// fragmentHeader writes h, which is old but for what says which part of the datagram follows.
// The checksum is carried on: a wrong one stays wrong.
func fragmentHeader(h, old []byte, id uint16, length, offset int, more bool) {
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+length))
	binary.BigEndian.PutUint16(h[4:], id)
	word := uint16(offset / 8)
	if more {
		word |= ipv4More
	}
	binary.BigEndian.PutUint16(h[6:], word)
	check := checksum.Get(old[10:])
	checksum.Put(h[10:], check)
	checksum.Put(h[10:], checksum.Update(check, checksum.Diff(old, h)))
}

// laterOptions makes h the header of later fragments: options that are not to be in each are
// blotted out, which keeps its length. What cannot be read is taken for none.
func laterOptions(h []byte, id uint16) {
	var was [60]byte
	old := was[:copy(was[:], h)]
	for b := h[IPv4Len:]; len(b) > 0; {
		switch {
		case b[0] == optionNoOp:
			b = b[1:]
			continue
		case b[0] == optionEnd || len(b) < 2 || b[1] < 2 || int(b[1]) > len(b):
			clear(b)
			b = nil
			continue
		}
		length := int(b[1])
		if b[0]&optionCopied == 0 {
			for i := range b[:length] {
				b[i] = optionNoOp
			}
		}
		b = b[length:]
	}
	binary.BigEndian.PutUint16(h[4:], id)
	checksum.Put(h[10:], checksum.Update(checksum.Get(h[10:]), checksum.Diff(old, h)))
}

// Any reports whether a fragment is left.
func (c *Cutter) Any() bool { return c.at < c.end }

// Next writes the frame of the next fragment into b and returns its length, 0 when none is
// left. One that is longer than b is lost; its length is returned all the same.
func (c *Cutter) Next(b []byte) int {
	if !c.Any() {
		return 0
	}
	part := c.frame[c.at:min(c.at+c.size, c.end)]
	offset := c.offset + c.at - c.from
	c.at += len(part)
	if n := c.from + len(part); n > len(b) {
		return n
	}
	copy(b, c.frame[:c.from])
	copy(b[c.from:], part)
	fragmentHeader(b[c.l3:c.from], c.frame[c.l3:c.from], binary.BigEndian.Uint16(c.frame[c.l3+4:]), len(part), offset, c.Any() || c.more)
	return c.from + len(part)
}

// Rest is how many fragments are left, and how many bytes their frames have.
func (c *Cutter) Rest() (frames, bytes int) {
	if !c.Any() {
		return 0, 0
	}
	left := c.end - c.at
	frames = (left + c.size - 1) / c.size
	return frames, left + frames*c.from
}

// Forget gives up what is left.
func (c *Cutter) Forget() { c.at = c.end }
