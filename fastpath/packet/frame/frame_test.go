package frame_test

import (
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/packet/frame"
)

var described = map[string]frame.Frame{
	"TCP over IPv4":             frame.TCP("10.0.0.1:1000", "10.0.0.2:80", 0x12, "hello"),
	"TCP over IPv6":             frame.TCP("[fd00::1]:1000", "[fd00::2]:80", 0x02, ""),
	"UDP over IPv4":             frame.UDP("10.0.0.1:1000", "10.0.0.2:53", "odd"),
	"UDP over IPv6":             frame.UDP("[fd00::1]:1000", "[fd00::2]:53", "even"),
	"UDP without checksum":      with(frame.UDP("10.0.0.1:1000", "10.0.0.2:53", "x"), func(f *frame.Frame) { f.NoChecksum = true }),
	"SCTP over IPv4":            frame.SCTP("10.0.0.1:1000", "10.0.0.2:80", "chunk..."),
	"SCTP over IPv6":            frame.SCTP("[fd00::1]:1000", "[fd00::2]:80", "chunk..."),
	"ICMP":                      with(frame.ICMP("10.0.0.1", "10.0.0.2", 8, 0, "ping"), func(f *frame.Frame) { f.ICMPRest = 0x00010002 }),
	"ICMPv6":                    with(frame.ICMP("fd00::1", "fd00::2", 128, 0, "ping"), func(f *frame.Frame) { f.ICMPRest = 0x00010002 }),
	"another protocol":          frame.Raw("10.0.0.1", "10.0.0.2", 47, "gre"),
	"a VLAN tag":                with(frame.UDP("10.0.0.1:1000", "10.0.0.2:53", "x"), func(f *frame.Frame) { f.Tagged, f.VLAN = true, 42 }),
	"IPv4 options":              with(frame.TCP("10.0.0.1:1000", "10.0.0.2:80", 2, ""), func(f *frame.Frame) { f.Options = []byte{1, 1, 1, 0} }),
	"padding":                   with(frame.UDP("10.0.0.1:1000", "10.0.0.2:53", "x"), func(f *frame.Frame) { f.Padding = 17 }),
	"a first IPv4 fragment":     with(frame.UDP("10.0.0.1:1000", "10.0.0.2:53", "12345678"), func(f *frame.Frame) { f.More, f.ID = true, 77 }),
	"a later IPv4 fragment":     with(frame.Raw("10.0.0.1", "10.0.0.2", 17, "rest"), func(f *frame.Frame) { f.Offset, f.ID = 1480, 77 }),
	"a first IPv6 fragment":     with(frame.UDP("[fd00::1]:1000", "[fd00::2]:53", "12345678"), func(f *frame.Frame) { f.More, f.ID = true, 7777777 }),
	"a later IPv6 fragment":     with(frame.Raw("fd00::1", "fd00::2", 17, "rest"), func(f *frame.Frame) { f.Offset, f.ID = 1448, 7777777 }),
	"IPv6 extension headers":    with(frame.TCP("[fd00::1]:1000", "[fd00::2]:80", 2, ""), func(f *frame.Frame) { f.Extensions = extensions }),
	"an atomic IPv6 fragment":   with(frame.TCP("[fd00::1]:1000", "[fd00::2]:80", 2, ""), func(f *frame.Frame) { f.Extensions = []frame.Extension{{Type: 44, Body: make([]byte, 6)}} }),
	"type of service and no DF": with(frame.TCP("10.0.0.1:1000", "10.0.0.2:80", 2, ""), func(f *frame.Frame) { f.TOS, f.DF = 0xb8, false }),
}

var extensions = []frame.Extension{
	{Type: 0, Body: []byte{5, 2, 0, 0, 1, 0}},
	{Type: 60, Body: append([]byte{1, 12}, make([]byte, 12)...)},
	{Type: 43, Body: make([]byte, 22)},
	{Type: 51, Body: make([]byte, 22)},
}

func with(f frame.Frame, change func(*frame.Frame)) frame.Frame {
	change(&f)
	return f
}

func TestDecodeGivesBackWhatWasBuilt(t *testing.T) {
	for name, f := range described {
		b := f.Bytes()
		got, err := frame.Decode(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := frame.Diff(f, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := frame.Check(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheckFindsEveryFlippedBit flips each bit behind the Ethernet header that a
// checksum covers.
func TestCheckFindsEveryFlippedBit(t *testing.T) {
	for _, name := range []string{"TCP over IPv4", "TCP over IPv6", "UDP over IPv6", "SCTP over IPv4", "ICMP", "ICMPv6"} {
		b := described[name].Bytes()
		for i := 14; i < len(b); i++ {
			if v6 := b[14]>>4 == 6; v6 && (i < 18 || i == 20 || i == 21) {
				continue // class, flow label, next header and hop limit have none
			}
			for bit := range 8 {
				b[i] ^= 1 << bit
				if frame.Check(b) == nil {
					t.Errorf("%s: bit %d of byte %d is not found", name, bit, i)
				}
				b[i] ^= 1 << bit
			}
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, f := range map[string]frame.Frame{
		"two families":      {Src: described["UDP over IPv4"].Src, Dst: described["UDP over IPv6"].Dst},
		"no addresses":      {},
		"options in bytes":  with(described["UDP over IPv4"], func(f *frame.Frame) { f.Options = []byte{1} }),
		"extension in bits": with(described["UDP over IPv6"], func(f *frame.Frame) { f.Extensions = []frame.Extension{{Body: []byte{1}}} }),
	} {
		if _, err := f.Build(); err == nil {
			t.Errorf("%s: built", name)
		}
	}
}

func TestCRC32c(t *testing.T) {
	if got := frame.CRC32c([]byte("123456789")); got != 0xe3069283 { // check value of CRC-32/ISCSI
		t.Errorf("%08x, want e3069283", got)
	}
}

func TestDiffNamesTheField(t *testing.T) {
	a := described["TCP over IPv4"]
	if d := frame.Diff(a, a.To("10.0.0.9:81")); !strings.Contains(d, "10.0.0.9:81") {
		t.Errorf("diff %q", d)
	}
}
