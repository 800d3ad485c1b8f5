package checksum_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"testing"

	"lace-cni.io/lace/fastpath/checksum"
)

// slow is RFC 1071 word by word in network order, carries folded as they arise; the
// result is turned into memory form.
func slow(sum uint16, b []byte) uint16 {
	s := uint32(swap(sum))
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		if s += w; s > 0xffff {
			s -= 0xffff
		}
	}
	return swap(uint16(s))
}

func swap(v uint16) uint16 { return v>>8 | v<<8 }

// same compares sums, which have two forms of zero.
func same(a, b uint16) bool { return a == b || a%0xffff == 0 && b%0xffff == 0 }

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestAddOfEveryLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := random(rng, 9001)
	for n := 0; n <= len(b); n++ {
		sum := uint16(rng.Uint32())
		if got, want := checksum.Add(sum, b[:n]), slow(sum, b[:n]); !same(got, want) {
			t.Errorf("%d bytes: %04x, want %04x", n, got, want)
		}
	}
}

func TestAddAtItsExtremes(t *testing.T) {
	for n := 0; n <= 1500; n++ {
		ones, zeros := make([]byte, n), make([]byte, n)
		for i := range ones {
			ones[i] = 0xff
		}
		for _, sum := range []uint16{0, 1, 0xffff} {
			if got, want := checksum.Add(sum, ones), slow(sum, ones); !same(got, want) {
				t.Errorf("%d bytes of ff after %04x: %04x, want %04x", n, sum, got, want)
			}
			if got := checksum.Add(sum, zeros); got != sum {
				t.Errorf("%d zero bytes after %04x: %04x", n, sum, got)
			}
		}
	}
}

func TestAddInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		b := random(rng, 2+rng.IntN(200))
		cut := 2 * rng.IntN(len(b)/2)
		whole, parts := checksum.Add(0, b), checksum.Add(checksum.Add(0, b[:cut]), b[cut:])
		if !same(whole, parts) || !same(whole, checksum.Plus(checksum.Add(0, b[:cut]), checksum.Add(0, b[cut:]))) {
			t.Fatalf("%d bytes cut at %d: %04x, want %04x", len(b), cut, parts, whole)
		}
	}
}

// TestKnownHeader is the example of RFC 1071, section 3, and an IPv4 header off a wire.
func TestKnownHeader(t *testing.T) {
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got := swap(checksum.Add(0, b)); got != 0xddf2 {
		t.Errorf("sum %04x, want ddf2", got)
	}
	header := []byte{0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7}
	if got := swap(checksum.Of(0, header)); got != 0xb861 {
		t.Errorf("header checksum %04x, want b861", got)
	}
	checksum.Put(header[10:], checksum.Of(0, header))
	if !checksum.Valid(0, header) || header[10] != 0xb8 {
		t.Errorf("% x is not valid after Put", header)
	}
	for i := range header {
		header[i] ^= 0x10
		if checksum.Valid(0, header) {
			t.Errorf("byte %d changed and still valid", i)
		}
		header[i] ^= 0x10
	}
}

func TestPseudo(t *testing.T) {
	for _, c := range []struct {
		name     string
		src, dst string
		protocol uint8
		length   int
	}{
		{"IPv4", "10.1.2.3", "192.168.255.254", 6, 20},
		{"IPv4, all ones", "255.255.255.255", "255.255.255.255", 255, 65535},
		{"IPv4, all zeros", "0.0.0.0", "0.0.0.0", 17, 8},
		{"IPv6", "fd00::1", "2001:db8:ffff::2", 58, 1240},
		{"IPv6, a length of more than 16 bits", "fd00::1", "fd00::2", 17, 0x12345},
	} {
		src, dst := netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst)
		header := append(src.AsSlice(), dst.AsSlice()...)
		header = binary.BigEndian.AppendUint32(header, uint32(c.length))
		header = append(header, 0, 0, 0, c.protocol)
		a, b := src.As16(), dst.As16()
		if got, want := checksum.Pseudo(&a, &b, c.protocol, c.length), slow(0, header); !same(got, want) {
			t.Errorf("%s: %04x, want %04x", c.name, got, want)
		}
	}
}

// TestUpdateAgainstRecompute changes a few words of random packets and updates the
// checksum by their difference. Packets are dense in 00 and ff, where the two forms of
// zero meet.
func TestUpdateAgainstRecompute(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200000 {
		b := random(rng, 24)
		for i := range b {
			if rng.IntN(2) == 0 {
				b[i] = byte(-rng.IntN(2))
			}
		}
		b[0] |= 0x40 // a packet is never all zero
		checksum.Put(b[2:], 0)
		checksum.Put(b[2:], checksum.Of(0, b))
		diff := uint16(0)
		for range 1 + rng.IntN(3) {
			at := 4 + 2*rng.IntN(8)
			old := append([]byte(nil), b[at:at+4]...)
			copy(b[at:], random(rng, 4))
			diff = checksum.Plus(diff, checksum.Diff(old, b[at:at+4]))
		}
		checksum.Put(b[2:], checksum.Update(checksum.Get(b[2:]), diff))
		if !checksum.Valid(0, b) {
			t.Fatalf("% x is not valid after an update by %04x", b, diff)
		}
		got := checksum.Get(b[2:])
		checksum.Put(b[2:], 0)
		if want := checksum.Of(0, b); got != want {
			t.Fatalf("% x: updated to %04x, computed %04x", b, got, want)
		}
	}
}

// TestUpdateKeepsZeroApart is the case for which RFC 1624 was written: a checksum that
// must become 0000 and not ffff.
func TestUpdateKeepsZeroApart(t *testing.T) {
	// Section 4: HC = dd2f, m = 5555, m' = 3285.
	got := checksum.Update(swap(0xdd2f), checksum.Diff([]byte{0x55, 0x55}, []byte{0x32, 0x85}))
	if got != 0 {
		t.Errorf("%04x, want 0000", swap(got))
	}
}

func TestNothingChangedIsNoChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for check := range 1 << 16 {
		word := random(rng, 2)
		if got := checksum.Update(uint16(check), checksum.Diff(word, word)); !same(got, uint16(check)) {
			t.Fatalf("%04x became %04x", check, got)
		}
	}
}

func TestPartialSumIsCompleted(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 10000 {
		a, b := [16]byte(random(rng, 16)), [16]byte(random(rng, 16))
		segment := random(rng, 20+rng.IntN(1400))
		pseudo := checksum.Pseudo(&a, &b, 6, len(segment))
		checksum.Put(segment[16:], 0)
		want := checksum.Of(pseudo, segment)
		checksum.Put(segment[16:], pseudo) // as a sender with CHECKSUM_PARTIAL leaves it
		got := checksum.Of(0, segment)
		if got != want {
			t.Fatalf("%d bytes: completed to %04x, want %04x", len(segment), got, want)
		}
		checksum.Put(segment[16:], got)
		if !checksum.Valid(pseudo, segment) {
			t.Fatalf("%d bytes: completed to %04x, which is not valid", len(segment), got)
		}
	}
}

func TestNonZero(t *testing.T) {
	for in, want := range map[uint16]uint16{0: 0xffff, 1: 1, 0xffff: 0xffff} {
		if got := checksum.NonZero(in); got != want {
			t.Errorf("NonZero(%04x) = %04x, want %04x", in, got, want)
		}
	}
}

// TestCRC32c uses the vectors of RFC 3720, appendix B.4, and the usual check value.
func TestCRC32c(t *testing.T) {
	up, down, ones := make([]byte, 32), make([]byte, 32), make([]byte, 32)
	for i := range 32 {
		up[i], down[i], ones[i] = byte(i), byte(31-i), 0xff
	}
	for _, c := range []struct {
		name string
		in   []byte
		want uint32
	}{
		{"32 zeros", make([]byte, 32), 0x8a9136aa},
		{"32 ones", ones, 0x62a8ab43},
		{"32 rising", up, 0x46dd794e},
		{"32 falling", down, 0x113fdb5c},
		{"digits", []byte("123456789"), 0xe3069283},
		{"nothing", nil, 0},
	} {
		if got := checksum.CRC32c(0, c.in); got != c.want {
			t.Errorf("%s: %08x, want %08x", c.name, got, c.want)
		}
		for cut := range len(c.in) {
			if got := checksum.CRC32c(checksum.CRC32c(0, c.in[:cut]), c.in[cut:]); got != c.want {
				t.Errorf("%s cut at %d: %08x, want %08x", c.name, cut, got, c.want)
			}
		}
	}
}

func TestSCTP(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 10000 {
		b := random(rng, checksum.SCTPHeaderLen+rng.IntN(1480))
		zeroed := append([]byte(nil), b...)
		clear(zeroed[8:12])
		want := crc32.Checksum(zeroed, crc32.MakeTable(crc32.Castagnoli))
		if got := checksum.SCTP(b); got != want {
			t.Fatalf("%d bytes: %08x, want %08x", len(b), got, want)
		}
	}
	if got := checksum.SCTP(make([]byte, checksum.SCTPHeaderLen-1)); got != 0 {
		t.Errorf("less than a header: %08x, want 0", got)
	}
}

func TestNothingAllocates(t *testing.T) {
	b := make([]byte, 1500)
	var src, dst [16]byte
	if n := testing.AllocsPerRun(100, func() {
		sum := checksum.Pseudo(&src, &dst, 6, len(b))
		checksum.Put(b[16:], checksum.Update(checksum.Of(sum, b), checksum.Diff(b[:4], b[4:8])))
		binary.LittleEndian.PutUint32(b[8:], checksum.SCTP(b))
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, n := range map[string]int{"20": 20, "64": 64, "1500": 1500} {
		buf := make([]byte, n)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(n))
			var sum uint16
			for b.Loop() {
				sum = checksum.Add(sum, buf)
			}
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	var check uint16
	for b.Loop() {
		check = checksum.Update(check, 0x1234)
	}
}

func BenchmarkSCTP(b *testing.B) {
	buf := make([]byte, 1480)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		checksum.SCTP(buf)
	}
}

// TestSCTPDiff: what the checksum changes by when the ports do does not depend on what lies
// behind them.
func TestSCTPDiff(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{12, 13, 64, 67, 68, 69, 132, 1500, 65515} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		before, old := checksum.SCTP(b), [4]byte(b[:4])
		copy(b, "PORT")
		if got, want := checksum.SCTPDiff(old, [4]byte([]byte("PORT")), n), before^checksum.SCTP(b); got != want {
			t.Errorf("%d bytes: %08x, want %08x", n, got, want)
		}
	}
	if got := checksum.SCTPDiff([4]byte{1}, [4]byte{2}, 3); got != 0 {
		t.Errorf("shorter than its ports: %08x, want 0", got)
	}
}
