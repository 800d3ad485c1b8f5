package xsk

import (
	"strings"
	"testing"
)

func TestUmemConfig(t *testing.T) {
	cases := []struct {
		name string
		c    UmemConfig
		err  string // what the error names; empty: accepted
	}{
		{"the default chunk", UmemConfig{Frames: 1}, ""},
		{"a chunk of a page", UmemConfig{Frames: 3, ChunkSize: 4096}, ""},
		{"the largest headroom", UmemConfig{Frames: 1, Headroom: 2048 - 256 - 14}, ""},
		{"no frames", UmemConfig{}, "0 frames"},
		{"a negative number of frames", UmemConfig{Frames: -1}, "-1 frames"},
		{"more memory than any need", UmemConfig{Frames: 1 << 22}, "4194304 frames"},
		{"a chunk below the kernel's minimum", UmemConfig{Frames: 1, ChunkSize: 1024}, "chunk size 1024"},
		{"a chunk that is no power of two", UmemConfig{Frames: 1, ChunkSize: 3000}, "chunk size 3000"},
		{"a chunk larger than a page", UmemConfig{Frames: 1, ChunkSize: 1 << 20}, "chunk size 1048576"},
		{"a negative chunk", UmemConfig{Frames: 1, ChunkSize: -2048}, "chunk size -2048"},
		{"a headroom that leaves no room for a frame", UmemConfig{Frames: 1, Headroom: 2048 - 256 - 13}, "headroom 1779"},
		{"a negative headroom", UmemConfig{Frames: 1, Headroom: -1}, "headroom -1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u, err := NewUmem(c.c)
			if c.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := u.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v: want one that names %q", err, c.err)
			}
		})
	}
}

// TestAllocate: frames of our own start where received ones do, each in a chunk of its own.
func TestAllocate(t *testing.T) {
	u := newUmem(t, UmemConfig{Frames: 8, Headroom: 64})
	batch := make([]Frame, 10)
	if n := u.Allocate(batch); n != 8 {
		t.Fatalf("allocated %d of 8", n)
	}
	seen := map[uint64]bool{}
	for _, f := range batch[:8] {
		if f.Addr%2048 != 256+64 || f.Len != 0 || seen[f.Addr] {
			t.Errorf("frame %+v: want an empty one at %d in a chunk of its own", f, 256+64)
		}
		seen[f.Addr] = true
		if got := cap(u.Bytes(f)); got != u.MaxFrame() {
			t.Errorf("frame %+v has room for %d bytes: want MaxFrame, %d", f, got, u.MaxFrame())
		}
	}
	conserved(t, u)
}

// TestClosedUmem: after Close nothing can be reached, and nothing panics.
func TestClosedUmem(t *testing.T) {
	u, err := NewUmem(UmemConfig{Frames: 4})
	if err != nil {
		t.Fatal(err)
	}
	var batch [2]Frame
	u.Allocate(batch[:])
	for range 2 {
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if b := u.Bytes(batch[0]); b != nil {
		t.Errorf("bytes of a frame after the close: %d", len(b))
	}
	if n := u.Allocate(batch[:]); n != 0 {
		t.Errorf("allocated %d frames after the close", n)
	}
	if _, err := u.Release(batch[:]); err == nil {
		t.Error("a frame was released after the close")
	}
	if _, err := Open(u, Config{Device: "lo"}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("open on closed memory: %v", err)
	}
	if err := u.Conserved(); err != nil {
		t.Error(err)
	}
}
