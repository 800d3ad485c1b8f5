package oracle

// Dice decides what is left to chance. *rand.Rand is one.
type Dice interface {
	IntN(n int) int // 0 to n-1
}

// Bytes are dice that a fuzzer loads: each throw uses one byte, and when none is left all
// throws are 0.
type Bytes []byte

// IntN implements Dice for n up to 256.
func (b *Bytes) IntN(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0]) % n
	*b = (*b)[1:]
	return v
}

// one is one of several.
func one[T any](d Dice, of ...T) T { return of[d.IntN(len(of))] }

// rarely is true once in n times.
func rarely(d Dice, n int) bool { return d.IntN(n) == n-1 }

// some is each of several in about half of the cases, in their order.
func some[T any](d Dice, of ...T) (out []T) {
	for _, v := range of {
		if d.IntN(2) == 1 {
			out = append(out, v)
		}
	}
	return out
}
