package pipeline

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/packet/frame"
	"lace-cni.io/lace/fastpath/reason"
)

// storm throws frames at a pipeline: legal ones, and such that were legal before bytes of
// them were changed, cut, or replaced by those of another. What a fuzzer finds by looking at
// branches this finds by numbers.
type storm struct {
	*world
	rng    *rand.Rand
	seeds  []seed
	memory []byte // untouched but for the frame
	before []byte // the frame that came
	used   []byte // and what became of it
	met    [reason.Count]int
}

// seed is a legal frame, and the port where it would be met.
type seed struct {
	b    []byte
	port uint16
}

// Room for a frame in memory, and the bytes around it that nobody may touch.
const (
	stormRoom = 2048
	canary    = 64
)

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{world: newFuzzed(t), rng: rand.New(rand.NewPCG(seed, 99))}
	s.memory = bytes.Clone(untouched)
	for _, s.family = range []int{4, 6} {
		s.sow()
	}
	return s
}

// sow adds frames of the world's family.
func (s *storm) sow() {
	at := func(e string) string { return s.endpoint(e).String() }
	add := func(port string, frames ...frame.Frame) {
		for i := range frames {
			s.seeds = append(s.seeds, seed{frames[i].Bytes(), portIDs[port]})
		}
	}
	port := map[int]string{4: ":8080", 6: ":8081"}[s.family]
	for _, flags := range []uint8{syn, ack, synAck, fin, rst} {
		add("client", frame.TCP(at("client:4000"), at("vip:80"), flags, "hello"))
		add("wire", frame.TCP(at("outside:4000"), at("vip:80"), flags, ""))
		for from, way := range map[string]string{"web": "web", "remote": "wire"} {
			add(way, frame.TCP(at(from+port), at("client:4000"), flags, "hello"))
		}
	}
	for from, way := range map[string]string{"web": "web", "remote": "wire", "other": "other"} {
		quoted := frame.TCP(at("client:4000"), at(from+port), ack, "hello")
		add(way, frame.ICMP(s.addr(from).String(), s.addr("client").String(), map[int]uint8{4: 3, 6: 1}[s.family], 3, string(quoted.Bytes()[packet.EthernetLen:])))
	}
	whole := frame.UDP(at("client:4000"), at("vip2:80"), "0123456789abcdef")
	first, last, odd := whole, whole, whole
	first.More, first.ID = true, 7
	last.Offset, last.ID = 24, 7
	if s.family == 4 {
		odd.Options = make([]byte, 12)
	} else {
		odd.Extensions = []frame.Extension{{Type: 0, Body: make([]byte, 6)}, {Type: 60, Body: make([]byte, 14)}}
	}
	add("client", whole, first, last, odd)
	add("node", frame.SCTP(at("node:4000"), at("vip:80"), "chunk..."))
}

// mutated is a frame in the middle of the memory, its capacity the room there, and the port
// where it is met, mostly the right one.
func (s *storm) mutated() ([]byte, uint16) {
	from := s.seeds[s.rng.IntN(len(s.seeds))]
	b := s.memory[canary : canary+len(from.b) : canary+stormRoom]
	copy(b, from.b)
	if s.rng.IntN(8) == 0 {
		from.port = uint16(s.rng.IntN(7))
	}
	for range s.rng.IntN(4) {
		at := s.rng.IntN(len(b))
		switch s.rng.IntN(6) {
		case 0:
			b[at] ^= 1 << s.rng.IntN(8)
		case 1:
			b[at] = byte(s.rng.Uint32())
		case 2:
			b[at] = [...]byte{0, 1, 0x7f, 0x80, 0xff}[s.rng.IntN(5)]
		case 3:
			if at+2 <= len(b) {
				binary.BigEndian.PutUint16(b[at:], [...]uint16{0, 1, 7, 8, 20, 40, 0x8100, 0xffff}[s.rng.IntN(8)])
			}
		case 4:
			other := s.seeds[s.rng.IntN(len(s.seeds))].b
			if at < len(other) {
				copy(b[at:], other[at:])
			}
		default:
			b = b[:1+at]
		}
	}
	return b, from.port
}

func (s *storm) round() {
	s.t.Helper()
	b, port := s.mutated()
	punt := packet.Punt{Port: port, Egress: s.rng.IntN(8) == 0, Cut: s.rng.IntN(16) == 0}
	s.before = append(s.before[:0], b...)
	length := len(b)
	copy(s.memory[canary+length:canary+stormRoom], untouched)
	r := s.pipeline.Process(s.snapshot, b, punt, int64(s.clock), nil)
	s.judgeStorm(length, &r)
	if r.Verdict == Pass && !bytes.Equal(s.used[12:length], s.before[12:]) {
		s.t.Fatalf("a frame that is not ours was changed: %x", s.before)
	}
	for r.More { // fragments that were held until this one came
		b = s.memory[canary : canary+stormRoom : canary+stormRoom]
		_, r = s.pipeline.Next(s.snapshot, b, int64(s.clock), nil)
		s.judgeStorm(stormRoom, &r)
	}
}

// judgeStorm holds a result to what is always true, and makes the memory as it was.
func (s *storm) judgeStorm(length int, r *Result) {
	s.t.Helper()
	if !s.unharmed(max(length, r.Len)) {
		s.t.Fatalf("wrote outside of the frame: %x", s.before)
	}
	if held := r.Verdict == Hold; held != (r.Reason == reason.None) || !held && r.Verdict != verdictOf(r.Reason) ||
		(r.Verdict == Drop || held) != (r.Len == 0) || r.Len > stormRoom {
		s.t.Fatalf("%+v of %x", r, s.before)
	}
	s.met[r.Reason]++
	if r.Verdict == Forward || r.Verdict == Answer {
		var p packet.Packet
		if o := p.Parse(s.used[:r.Len]); o != packet.OK && o != packet.NoPorts {
			s.t.Fatalf("what leaves does not parse (%d): %x became %x", o, s.before, s.used[:r.Len])
		}
	}
}

// unharmed reports whether the bytes around the frame, or around what it has become, are
// those of before, and makes the memory as it was.
func (s *storm) unharmed(length int) bool {
	used := s.memory[canary : canary+length]
	for _, around := range [][]byte{s.memory[:canary], s.memory[canary+length:]} {
		if !bytes.Equal(around, untouched[:len(around)]) {
			return false
		}
	}
	s.used = append(s.used[:0], used...)
	copy(used, untouched)
	return true
}

var untouched = bytes.Repeat([]byte{0xa5}, canary+stormRoom+canary)

// TestStorm throws many frames, the same ones in each run. Set LACE_LONG_TESTS=1 for 10^8.
func TestStorm(t *testing.T) {
	rounds := 200_000
	if os.Getenv("LACE_LONG_TESTS") == "1" {
		rounds = 100_000_000
	}
	s := newStorm(t, 1)
	flows, err := conntrack.New(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	s.flows, s.pipeline = flows, New(Config{Flows: flows, Rand: rand.New(rand.NewPCG(3, 4))})
	for n := range rounds {
		s.clock += 1000
		s.round()
		if n%1024 == 0 { // time goes by, and flows with it
			s.clock += 5 * time.Second
			s.pipeline.Settle(true, int64(s.clock))
			s.pipeline.Expire(s.snapshot, int64(s.clock), 1<<10)
			s.pipeline.Lost(int64(s.clock), func(reason.Reason, int, int) {})
		}
	}
	for _, r := range []reason.Reason{
		reason.NewFlow, reason.Established, reason.Reply, reason.NoEndpoints, reason.UnknownPort, reason.NoFlow, reason.NotClaimed,
		reason.SpoofedSource, reason.Malformed, reason.ICMPTranslated, reason.UnsupportedProtocol, reason.UnknownPortID, reason.UnallocatedVIP,
	} {
		if s.met[r] == 0 {
			t.Errorf("no frame was met with %s: the storm does not get far", r)
		}
	}
	for r, n := range s.met {
		if n > 0 {
			t.Logf("%-22s %d", reason.Reason(r), n)
		}
	}
}
