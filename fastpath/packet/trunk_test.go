package packet_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

// TestTrunkBytes pins the encoding, which the programs in C share.
func TestTrunkBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func([]byte) bool
		want  string // the source address
	}{
		{"a flow's packet, met on its way in from port 3", func(b []byte) bool { return packet.WritePunt(b, packet.Punt{Port: 3, Why: packet.PuntFlow}) }, "024c50000003"},
		{"a VIP's packet from port 4095", func(b []byte) bool { return packet.WritePunt(b, packet.Punt{Port: 4095, Why: packet.PuntVIP}) }, "024c50010fff"},
		{"the beginning of a VIP's packet that the trunk does not take, from port 5", func(b []byte) bool {
			return packet.WritePunt(b, packet.Punt{Port: 5, Why: packet.PuntVIP, Cut: true})
		}, "024c50410005"},
		{"a packet met on its way out of port 2", func(b []byte) bool { return packet.WritePunt(b, packet.Punt{Port: 2, Egress: true}) }, "024c50800002"},
		{"deliver out of port 258", func(b []byte) bool { return packet.WriteInject(b, packet.Direct, 258) }, "024c49000102"},
		{"give to the stack as from port 5", func(b []byte) bool { return packet.WriteInject(b, packet.Stack, 5) }, "024c49010005"},
		{"let go on out of port 6", func(b []byte) bool { return packet.WriteInject(b, packet.Resume, 6) }, "024c49020006"},
	} {
		frame := bytes.Repeat([]byte{0xaa}, 60)
		if !c.write(frame) {
			t.Errorf("%s: not written", c.name)
		}
		if got := hex.EncodeToString(frame[6:12]); got != c.want {
			t.Errorf("%s: source %s, want %s", c.name, got, c.want)
		}
		if !bytes.Equal(frame[:6], bytes.Repeat([]byte{0xaa}, 6)) || !bytes.Equal(frame[12:], bytes.Repeat([]byte{0xaa}, 48)) {
			t.Errorf("%s: other bytes were written", c.name)
		}
	}
}

func TestTrunkRefuses(t *testing.T) {
	punted, injected := make([]byte, 14), make([]byte, 14)
	packet.WritePunt(punted, packet.Punt{Port: 3})
	packet.WriteInject(injected, packet.Direct, 3)
	if _, ok := packet.ReadPunt(injected); ok {
		t.Error("a frame for the kernel side is read as punted")
	}
	if _, _, ok := packet.ReadInject(punted); ok {
		t.Error("a punted frame is read as one for the kernel side")
	}
	if _, ok := packet.ReadPunt(make([]byte, 60)); ok {
		t.Error("a foreign frame is read as punted")
	}
	if _, ok := packet.ReadPunt(punted[:13]); ok {
		t.Error("a frame shorter than its header is read")
	}
	if packet.WriteInject(make([]byte, 13), packet.Direct, 1) || packet.WritePunt(make([]byte, 13), packet.Punt{}) {
		t.Error("a frame shorter than its header is written")
	}
}

func FuzzTrunk(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x01\x02\x4c\x50\x81\x00\x03\x08\x00"), uint16(3), uint8(1))
	f.Add([]byte("short"), uint16(4095), uint8(0xff))
	f.Fuzz(func(t *testing.T, frame []byte, port uint16, what uint8) {
		before := bytes.Clone(frame)
		punt, punted := packet.ReadPunt(frame)
		how, to, injected := packet.ReadInject(frame)
		if punted && injected {
			t.Fatal("one frame is of both kinds")
		}
		if punted && (!packet.WritePunt(frame, punt) || !bytes.Equal(frame, before)) {
			t.Fatalf("%+v written back differs", punt)
		}
		if injected && (!packet.WriteInject(frame, how, to) || !bytes.Equal(frame, before)) {
			t.Fatalf("%d %d written back differs", how, to)
		}
		want := packet.Punt{Port: port, Why: what & 0x3f, Egress: what&0x80 != 0, Cut: what&0x40 != 0}
		ok := packet.WritePunt(frame, want)
		if ok != (len(frame) >= packet.EthernetLen) {
			t.Fatalf("%d bytes: written %v", len(frame), ok)
		}
		if got, read := packet.ReadPunt(frame); ok && (!read || got != want) {
			t.Fatalf("wrote %+v, read %+v", want, got)
		}
		packet.WriteInject(frame, packet.Inject(what), port)
		if how, to, read := packet.ReadInject(frame); ok && (!read || how != packet.Inject(what) || to != port) {
			t.Fatalf("wrote %d %d, read %d %d", what, port, how, to)
		}
		if ok {
			copy(frame[6:12], before[6:12])
		}
		if !bytes.Equal(frame, before) {
			t.Fatal("other bytes were written")
		}
	})
}
