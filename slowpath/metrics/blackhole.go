package metrics

import "lace-cni.io/lace/fastpath/blackhole"

// blackHoles counts flows by the device that their packets do not fit. Ports without any are
// left out.
func blackHoles(r *Reading, to send) {
	type label struct {
		device string
		kind   blackhole.Kind
	}
	flows := map[label]int{}
	for i := range r.Holes {
		h := &r.Holes[i]
		flows[label{r.device(h.Out), h.Kind}]++
	}
	for l, n := range flows {
		to(float64(n), l.device, l.kind.String())
	}
}
