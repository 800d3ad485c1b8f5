// Package stats judges measurements that were taken in pairs.
//
// Machines drift: what else runs on them, their clocks and their caches change from minute
// to minute, and two figures of one round have that in common. So a comparison is the median
// over rounds of the ratio inside each round, with the range of the ratios, and a confidence
// interval by resampling rounds (B. Efron, "Bootstrap Methods", 1979), which assumes nothing
// about how they are spread.
//
// It owns arithmetic only: no clock, no I/O. It never drops an outlier.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Median of values, the mean of the middle two when there is no middle one; NaN of none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Quantile of values, 0 to 1, the nearest one below; NaN of none.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return s[int(q*float64(len(s)-1))]
}

// Few is the number of rounds below which an interval would say more than is known: one
// round that something else disturbed moves the median of two or three as it likes.
const Few = 5

// Comparison of one thing with another over rounds.
type Comparison struct {
	Rounds    int
	Median    float64 // of the ratios inside rounds
	Low, High float64 // range of the ratios
	From, To  float64 // 95 % confidence interval of the median; NaN of fewer rounds than Few
}

const resamples = 2000

// Compare relates pairs: of[i] and to[i] were measured in one round. A pair of which one is
// NaN was not measured and is left out, as is one whose ratio means nothing (zero to zero).
// The same pairs give the same answer.
func Compare(of, to []float64) Comparison {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		if r := of[i] / to[i]; !math.IsNaN(r) {
			ratios = append(ratios, r)
		}
	}
	if len(ratios) == 0 {
		nan := math.NaN()
		return Comparison{Median: nan, Low: nan, High: nan, From: nan, To: nan}
	}
	c := Comparison{Rounds: len(ratios), Median: Median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios)}
	c.From, c.To = math.NaN(), math.NaN()
	if len(ratios) >= Few {
		c.From, c.To = interval(ratios)
	}
	return c
}

// interval is the percentile bootstrap of the median.
func interval(ratios []float64) (from, to float64) {
	random := rand.New(rand.NewPCG(1, uint64(len(ratios))))
	medians, sample := make([]float64, resamples), make([]float64, len(ratios))
	for i := range medians {
		for k := range sample {
			sample[k] = ratios[random.IntN(len(ratios))]
		}
		medians[i] = Median(sample)
	}
	return Quantile(medians, 0.025), Quantile(medians, 0.975)
}
