package frame

import (
	"bytes"
	"fmt"
	"testing"
)

// TestCutAndJoin: what was cut and shuffled is put together again, whole and well formed.
func TestCutAndJoin(t *testing.T) {
	for _, f := range []Frame{
		UDP("10.0.0.1:1000", "10.0.0.2:53", string(bytes.Repeat([]byte("0123456789"), 900))),
		UDP("[fd00::1]:1000", "[fd00::2]:53", string(bytes.Repeat([]byte("0123456789"), 900))),
	} {
		whole := f.Bytes()
		for _, mtu := range []int{76, 576, 1280, 1500, 9000} {
			t.Run(fmt.Sprintf("%s/%d", f.Src.Addr(), mtu), func(t *testing.T) {
				var parts []Part
				for _, b := range Cut(whole, 7, mtu) {
					if err := Check(b); err != nil {
						t.Fatal(err)
					}
					if len(b)-14 > mtu {
						t.Errorf("a fragment of %d bytes, mtu %d", len(b)-14, mtu)
					}
					p, err := ReadPart(b)
					if err != nil {
						t.Fatal(err)
					}
					parts = append([]Part{p}, parts...)
				}
				got, err := Join(parts)
				if err != nil {
					t.Fatal(err)
				}
				if err := Check(got); err != nil {
					t.Error(err)
				}
				d, _ := Decode(got)
				want := f
				want.ID = d.ID
				if diff := Diff(want, d); diff != "" {
					t.Error(diff)
				}
				if _, err := Join(parts[1:]); err == nil {
					t.Error("joined without the last fragment")
				}
			})
		}
	}
}
