package nat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// chiSquare is Pearson's statistic against equal expectations.
func chiSquare(counts []int) (x float64) {
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	for _, n := range counts {
		x += (float64(n) - want) * (float64(n) - want) / want
	}
	return x
}

// critical is about the value that the statistic exceeds once in a million, by Wilson and
// Hilferty's approximation.
func critical(degrees int) float64 {
	d := float64(degrees)
	const z = 4.7534
	return d * math.Pow(1-2/(9*d)+z*math.Sqrt(2/(9*d)), 3)
}

// Every backend has the same share, and so has every pair of consecutive choices: no
// round robin, no memory.
func TestPickIsUniform(t *testing.T) {
	for _, n := range []int{2, 3, 7, 10, 100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			ids := make([]uint32, n)
			for i := range ids {
				ids[i] = uint32(1000 + i)
			}
			shares := make([]int, n)
			pairs := make([]int, min(n*n, 100))
			previous := 0
			for range 200_000 {
				i := int(Pick(r, ids)) - 1000
				if i < 0 || i >= n {
					t.Fatalf("chose %d, which is not in the list", i+1000)
				}
				shares[i]++
				if n*n == len(pairs) {
					pairs[previous*n+i]++
				}
				previous = i
			}
			if x, limit := chiSquare(shares), critical(n-1); x > limit {
				t.Errorf("χ² of the shares is %.1f, limit %.1f", x, limit)
			}
			if n*n != len(pairs) {
				return
			}
			if x, limit := chiSquare(pairs), critical(n*n-1); x > limit {
				t.Errorf("χ² of consecutive choices is %.1f, limit %.1f", x, limit)
			}
		})
	}
}

// The statistic finds what it is meant to find.
func TestChiSquareFindsBias(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shares := make([]int, 7)
	for range 200_000 {
		shares[r.Uint32()&63%7]++ // 64 is not a multiple of 7
	}
	if x, limit := chiSquare(shares), critical(6); x <= limit {
		t.Errorf("χ² of a biased choice is %.1f, not above %.1f", x, limit)
	}
}

func TestPickEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	if got := Pick(r, nil); got != 0 {
		t.Errorf("out of none: %d, want 0", got)
	}
	if got := Pick(r, []uint32{42}); got != 42 {
		t.Errorf("out of one: %d, want 42", got)
	}
}
