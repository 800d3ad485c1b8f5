package e2e

import (
	"fmt"
	"testing"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// accounted says what is missing in the account of a node since an earlier look; empty:
// nothing. What the kernel left to Go was received by a worker, or is counted as lost on
// the way; what a worker received was sent or given back, with a reason for each. Without
// the lane, packets of several segments go to Go, which counts the segments.
func (c *cluster) accounted(t *testing.T, before counter.Totals, beforeKernel api.Lane) string {
	t.Helper()
	now, kernel := c.totals(t, "n1"), c.lane(t, "n1")
	_, punted := punts(beforeKernel, kernel)
	received := now.Events[counter.Received] - before.Events[counter.Received]
	if got := received + lost(now) - lost(before); got < punted || kernel.On && got > punted {
		return fmt.Sprintf("%d packets were left to Go, %d received or counted as lost", punted, got)
	}
	settled := now.Events[counter.Transmitted] + now.Events[counter.Recycled] - before.Events[counter.Transmitted] - before.Events[counter.Recycled]
	var reasons uint64
	for r := range now.Reasons {
		reasons += now.Reasons[r].Packets - before.Reasons[r].Packets
	}
	if settled != received || reasons != received {
		return fmt.Sprintf("%d packets received, %d sent or given back, %d with a reason", received, settled, reasons)
	}
	return ""
}
