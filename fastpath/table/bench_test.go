package table_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

func BenchmarkFrontend(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 8))
			s := load(b, many(n, rng))
			vips := make([]packet.Addr, 4096)
			for i := range vips {
				vips[i] = number(10<<24|96<<16, rng.Uint32N(uint32(n)))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if s.Frontend(0, &vips[i&4095], packet.ProtocolTCP, 80) == nil {
					b.Fatal("not found")
				}
				i++
			}
		})
	}
}

func BenchmarkBackend(b *testing.B) {
	s := load(b, many(10_000, rand.New(rand.NewPCG(7, 8))))
	b.ReportAllocs()
	id := uint32(0)
	for b.Loop() {
		if s.Backend(id%100_000+1) == nil {
			b.Fatal("not found")
		}
		id += 7919
	}
}

func BenchmarkRoute(b *testing.B) {
	s := load(b, many(10, rand.New(rand.NewPCG(7, 8))))
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		a := number(10<<24|128<<16, i%(500<<8))
		if _, ok := s.Route(0, &a); !ok {
			b.Fatal("not found")
		}
		i += 7919
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			c := many(n, rand.New(rand.NewPCG(7, 8)))
			file := encode(b, c)
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if file, err = table.Encode(file, c); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(file)), "file-B")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "snapshot")
			if err := table.WriteFile(path, encode(b, many(n, rand.New(rand.NewPCG(7, 8))))); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := table.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWriteFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "snapshot")
	file := encode(b, many(10_000, rand.New(rand.NewPCG(7, 8))))
	b.ReportAllocs()
	for b.Loop() {
		if err := table.WriteFile(path, file); err != nil {
			b.Fatal(err)
		}
	}
}
