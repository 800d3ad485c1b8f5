package acts

import "math"

// chiSquare measures how far counts are from being all alike (Pearson's statistic). 0 is
// perfectly even.
func chiSquare(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return 0
	}
	expected := float64(total) / float64(len(counts))
	var x float64
	for _, n := range counts {
		d := float64(n) - expected
		x += d * d / expected
	}
	return x
}

// chiBound is the value that even shares stay below in all but one of 10,000 cases, for so
// many degrees of freedom (approximation of Wilson and Hilferty, 1931; within 1 % for one
// degree or more at this quantile).
func chiBound(freedom int) float64 {
	const quantile = 3.719 // of the normal distribution at 1 - 1e-4
	k := float64(max(freedom, 1))
	v := 2 / (9 * k)
	return k * math.Pow(1-v+quantile*math.Sqrt(v), 3)
}
