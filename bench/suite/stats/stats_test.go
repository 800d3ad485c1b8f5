package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedianAndQuantile(t *testing.T) {
	for _, c := range []struct {
		sentence string
		values   []float64
		median   float64
		p99      float64
	}{
		{"one value is everything", []float64{3}, 3, 3},
		{"odd, unsorted", []float64{5, 1, 3}, 3, 3},
		{"even: the mean of the middle two", []float64{4, 1, 3, 2}, 2.5, 3},
		{"an outlier moves nothing but the end", []float64{1, 1, 1, 1e9}, 1, 1},
	} {
		values := append([]float64{}, c.values...)
		if got := Median(c.values); got != c.median {
			t.Errorf("%s: median %v, want %v", c.sentence, got, c.median)
		}
		if got := Quantile(c.values, 0.99); got != c.p99 {
			t.Errorf("%s: p99 %v, want %v", c.sentence, got, c.p99)
		}
		for i := range values {
			if values[i] != c.values[i] {
				t.Errorf("%s: the values were moved", c.sentence)
			}
		}
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("nothing has a median")
	}
}

func TestCompare(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		sentence  string
		of, to    []float64
		rounds    int
		median    float64
		low, high float64
	}{
		{"the ratio of medians would be 1; pairs say 2", []float64{2, 20, 200}, []float64{1, 10, 100}, 3, 2, 2, 2},
		{"drift of the machine cancels", []float64{10, 5, 20}, []float64{5, 2.5, 10}, 3, 2, 2, 2},
		{"a round without one of both is left out", []float64{4, nan, 6, 8}, []float64{2, 2, nan, 2}, 2, 3, 2, 4},
		{"zero to zero says nothing", []float64{0, 3}, []float64{0, 1}, 1, 3, 3, 3},
		{"the shorter list ends the pairs", []float64{1, 2, 3}, []float64{1}, 1, 1, 1, 1},
	} {
		got := Compare(c.of, c.to)
		if got.Rounds != c.rounds || got.Median != c.median || got.Low != c.low || got.High != c.high {
			t.Errorf("%s: %+v", c.sentence, got)
		}
	}
	if got := Compare(nil, nil); got.Rounds != 0 || !math.IsNaN(got.Median) {
		t.Errorf("no pairs: %+v", got)
	}
}

// TestFewRoundsHaveNoInterval: what four rounds say has a median and a range, and from five
// on an interval.
func TestFewRoundsHaveNoInterval(t *testing.T) {
	of, to := []float64{1, 2, 527100, 3, 4}, []float64{1, 1, 1, 1, 1}
	for n, want := range map[int]bool{1: false, 2: false, 4: false, 5: true} {
		c := Compare(of[:n], to[:n])
		if has := !math.IsNaN(c.From) && !math.IsNaN(c.To); has != want || c.Rounds != n {
			t.Errorf("%d rounds: %+v", n, c)
		}
	}
}

// TestIntervalCoversTheTruth: of intervals that are made for 95 %, most hold the median from
// which the rounds were drawn. Few rounds make them too narrow, so 85 % of 9 is good.
func TestIntervalCoversTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	const runs, rounds, truth = 300, 9, 1.5
	covered := 0
	for range runs {
		of, to := make([]float64, rounds), make([]float64, rounds)
		for i := range of {
			to[i] = 1 + random.Float64()
			of[i] = to[i] * (truth + 0.2*random.NormFloat64())
		}
		c := Compare(of, to)
		if c.From < c.Low || c.To > c.High || c.From > c.Median || c.To < c.Median {
			t.Fatalf("interval outside of the range, or the median outside of the interval: %+v", c)
		}
		if c.From <= truth && truth <= c.To {
			covered++
		}
	}
	if covered < runs*85/100 {
		t.Errorf("%d of %d intervals hold the truth", covered, runs)
	}
}

func TestTheSamePairsGiveTheSameAnswer(t *testing.T) {
	of, to := []float64{1, 2, 4, 3, 5}, []float64{1, 1, 1, 2, 2}
	if a, b := Compare(of, to), Compare(of, to); a != b {
		t.Errorf("%+v, then %+v", a, b)
	}
}
