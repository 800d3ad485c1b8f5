package acts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lace-cni.io/lace/bench/lab/traffic"
)

// connections of the act, over all its clients.
const connections = 3000

// evenShares spreads connections from pod, node and outside, and judges the shares.
func evenShares(ctx context.Context, s *scene) (string, error) {
	clients := s.Clients()
	counts := map[string]int{}
	for _, e := range s.Web() {
		counts[e.Pod] = 0
	}
	total := 0
	for i, c := range clients {
		n := connections / len(clients)
		if i == 0 {
			n += connections % len(clients)
		}
		call := s.call("tcp")
		call.Bytes = 0
		t, err := s.Burst(ctx, c.Name, traffic.Burst{Request: call, Count: n, Parallel: 16})
		if err != nil {
			return "", err
		}
		if t.Failed() > 0 {
			return "", fmt.Errorf("%d of %d connections from %s failed: %s", t.Failed(), n, c.Name, t.First)
		}
		for name, k := range t.Servers {
			if _, known := counts[name]; !known {
				return "", fmt.Errorf("answered by %s, which is no endpoint of web", name)
			}
			counts[name] += k
			total += k
		}
	}
	x, bound := chiSquare(slices.Collect(maps.Values(counts))), chiBound(len(counts)-1)
	saw := fmt.Sprintf("%d connections: %s (expected %.1f%% each), χ² %.2f, even below %.2f",
		total, shares(counts, total), 100/float64(len(counts)), x, bound)
	if x > bound {
		return "", fmt.Errorf("uneven: %s", saw)
	}
	return saw, nil
}

func shares(counts map[string]int, total int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %.1f%%", name, 100*float64(counts[name])/float64(total)))
	}
	return strings.Join(out, ", ")
}
