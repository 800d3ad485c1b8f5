package hostport

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lace-cni.io/lace/control/model"
)

func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestListening: real sockets of this process are found, those on loopback are not.
func TestListening(t *testing.T) {
	tcp, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	hidden, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hidden.Close()
	got, err := Listening("/proc/thread-self/net")
	if err != nil {
		t.Fatal(err)
	}
	number := func(a net.Addr) uint16 {
		if t, ok := a.(*net.TCPAddr); ok {
			return uint16(t.Port)
		}
		return uint16(a.(*net.UDPAddr).Port)
	}
	if !got[Port{model.TCP, number(tcp.Addr())}] || !got[Port{model.UDP, number(udp.LocalAddr())}] {
		t.Errorf("%s or %s is not among %v", tcp.Addr(), udp.LocalAddr(), got)
	}
	if got[Port{model.TCP, number(hidden.Addr())}] {
		t.Errorf("%s is among them", hidden.Addr())
	}
}

func TestListsThatAreNotThereOrMakeNoSense(t *testing.T) {
	dir := files(t, map[string]string{"tcp": "  sl  local\n 0: x 0:0 0A\n 1: 00000000:XYZ 0:0 0A\n 2: 00000000:0050 0:0 0A\n 3: 00000000:0051 0:0 01\n 4: 00000000:0052 0:0 0A\n\n"})
	got, err := Listening(dir)
	if err != nil || len(got) != 1 || !got[Port{model.TCP, 80}] {
		t.Errorf("%v, %v; want port 80 alone: what comes behind a connection is none", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("  sl  local_address rem_address   st\n   0: 00000000:7580 00000000:0000 0A 00000000:00000000\n")
	f.Add("0: : 0A\n0: FFFFFFFF:FFFF x 07 y")
	f.Fuzz(func(t *testing.T, text string) {
		for _, state := range []string{"0A", "07"} {
			_ = read(strings.NewReader(text), state, func(port uint16) {
				if port == 0 {
					t.Error("port 0")
				}
			})
		}
	})
}
