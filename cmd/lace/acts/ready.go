package acts

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// readyWithin bounds the time from the start of the processes to the last node being ready,
// which takes about a second; generous, for the machine may have a lot else to do.
const readyWithin = 40 * time.Second

// ready waits for all nodes and says what carries the packets.
func ready(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	begin := time.Now()
	if err := s.Ready(ctx); err != nil {
		return "", err
	}
	took := time.Since(begin)
	nodes, err := s.Status(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	var slowest float64
	for _, n := range nodes {
		if !n.Ready || n.Generation.InUse == 0 {
			return "", fmt.Errorf("node %s is not ready: %s", n.Node, n.Waiting)
		}
		names = append(names, n.Node)
		slowest = max(slowest, n.Generation.Programming)
	}
	first := nodes[0]
	saw := fmt.Sprintf("%s ready after %s · %s · Linux %s · %d worker(s) · generation %d in use",
		strings.Join(names, ", "), milliseconds(took), s.Label(), first.Fastpath.Kernel, first.Fastpath.Workers,
		first.Generation.InUse)
	if slowest > 0 {
		saw += ", programmed in " + milliseconds(time.Duration(slowest*float64(time.Second)))
	}
	return saw, nil
}
