package table_test

import (
	"encoding/binary"
	"os"
	"testing"

	"lace-cni.io/lace/fastpath/table"
)

// FuzzLoad loads arbitrary bytes: an error, or a snapshot that keeps every promise;
// once as they are and once with size and checksum made right.
func FuzzLoad(f *testing.F) {
	golden, err := os.ReadFile("testdata/layout2.snapshot")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add(golden[:len(golden)/2])
	f.Add([]byte("LACESNAP"))
	f.Fuzz(func(t *testing.T, b []byte) {
		mustHold(t, b)
		b = append(make([]byte, 0, len(b)+1), b...)
		if table.Seal(b) {
			mustHold(t, b)
		}
	})
}

// FuzzSealed changes words of a good file and makes size and checksum right again. The
// input is a list of changes: two bytes of offset, counted in words, four of value.
func FuzzSealed(f *testing.F) {
	golden, err := os.ReadFile("testdata/layout2.snapshot")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte{40, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := append([]byte(nil), golden...)
		for ; len(changes) >= 6; changes = changes[6:] {
			at := 4 * (int(binary.LittleEndian.Uint16(changes)) % (len(b) / 4))
			copy(b[at:at+4], changes[2:6])
		}
		if table.Seal(b) {
			mustHold(t, b)
		}
	})
}

func mustHold(t *testing.T, b []byte) {
	s, err := table.Load(b)
	if err != nil {
		return
	}
	if err := walk(s); err != nil {
		t.Error(err)
	}
}
