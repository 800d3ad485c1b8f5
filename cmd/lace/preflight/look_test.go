package preflight

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Looking at this machine finds its kernel, and looking at an empty folder finds nothing
// of Lace; both change nothing.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	f := Look(Places{StateDir: dir, BPFFS: dir})
	if f.Kernel == "" || len(f.Features) == 0 || len(f.Forwarding) != 2 {
		t.Errorf("%+v", f)
	}
	if f.Fastpath != nil || f.FastpathAlive || len(f.Pins) != 0 || f.BPFFSMounted {
		t.Errorf("found in an empty folder: %+v", f)
	}
	if f.BPFFSAbsent || !Look(Places{StateDir: dir, BPFFS: dir + "/none"}).BPFFSAbsent {
		t.Error("a directory that is there is not told from one that is not")
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("looking left %v", files)
	}
}

// A held lock is a living fast path, whose own words are read; a free one is a dead one.
func TestFastpathIsAliveWhileItsLockIsHeld(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fastpath.lock")
	lock, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	words := `{"pid": 42, "xdpMode": "native", "socketMode": "copy", "workers": 2, "queues": 2, "trunkMTU": 1500}`
	if err := os.WriteFile(filepath.Join(dir, "fastpath.json"), []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := Look(Places{StateDir: dir, BPFFS: dir}); !f.FastpathAlive || f.Fastpath == nil || *f.Fastpath != (Fastpath{42, "native", "copy", 2, 2, 1500}) {
		t.Errorf("%+v, alive %v", f.Fastpath, f.FastpathAlive)
	}
	lock.Close()
	if f := Look(Places{StateDir: dir, BPFFS: dir}); f.FastpathAlive {
		t.Error("a free lock counts as a living fast path")
	}
}

// Pins are found under lace, at any depth.
func TestPins(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lace/maps/flows", "lace/links/3-eth0-ingress", "other/thing"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := lookAtPins(dir); len(got) != 2 {
		t.Errorf("%v, want the two under lace", got)
	}
}

// A broken answer of the kernel ends the walk; what came before it counts.
func TestAttributes(t *testing.T) {
	attr := func(size, kind uint16, body ...byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, size)
		b = binary.NativeEndian.AppendUint16(b, kind)
		return append(b, body...)
	}
	good := attr(6, 3|unix.NLA_F_NESTED, 'o', 'k', 0, 0)
	for name, c := range map[string]struct {
		in   []byte
		want int
	}{
		"nothing":                    {nil, 0},
		"two":                        {append(append([]byte{}, good...), good...), 2},
		"last one without padding":   {good[:6], 1},
		"shorter than its header":    {append(append([]byte{}, good...), attr(3, 1)...), 1},
		"longer than the message":    {append(append([]byte{}, good...), attr(60, 1)...), 1},
		"less than a header is left": {append(append([]byte{}, good...), 1, 2, 3), 1},
	} {
		n := 0
		for kind, value := range attributes(c.in) {
			if n++; kind != 3 || string(value) != "ok" {
				t.Errorf("%s: attribute %d is %d %q", name, n, kind, value)
			}
		}
		if n != c.want {
			t.Errorf("%s: %d attributes, want %d", name, n, c.want)
		}
	}
}
