package compile_test

import (
	"testing"

	"lace-cni.io/lace/control/compile"
	"lace-cni.io/lace/control/model"
)

// TestAChangeDoesNotCostMoreWithMoreServices: to change one endpoint makes about as many
// objects beside 5,000 Services as beside 50, the new tables included.
func TestAChangeDoesNotCostMoreWithMoreServices(t *testing.T) {
	var made [2]float64
	for i, n := range []int{50, 5_000} {
		c := compile.New(nil)
		for _, s := range large(n) {
			c.SetService(s)
		}
		either := []*model.Service{largeService(7, 9), largeService(7, 10)}
		generation := uint64(1)
		snapshot(t, c, generation)
		made[i] = testing.AllocsPerRun(50, func() {
			generation++
			c.SetService(either[generation%2])
			if _, _, err := c.Snapshot(generation, created); err != nil {
				t.Fatal(err)
			}
		})
	}
	if made[1] > 2*made[0] {
		t.Errorf("%.0f objects beside 5,000 Services, %.0f beside 50: more than twice as many", made[1], made[0])
	}
}
