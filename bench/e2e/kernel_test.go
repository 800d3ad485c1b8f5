package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// backlogDropped is how many packets the kernel has dropped since it started because a
// processor was too far behind: anybody's, of whatever namespace.
func backlogDropped() (sum uint64) {
	b, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if columns := strings.Fields(line); len(columns) > 1 {
			n, _ := strconv.ParseUint(columns[1], 16, 64)
			sum += n
		}
	}
	return sum
}

// showKernel writes what the kernel's own counters say of losses in every namespace.
func (c *cluster) showKernel(t *testing.T) {
	for _, name := range append([]string{"n1", "n2"}, origins...) {
		h, err := c.Host(name)
		if err != nil {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/net/", h.PID())
		found := append(pairedCounters(dir+"snmp"), pairedCounters(dir+"netstat")...)
		found = append(append(found, listedCounters(dir+"snmp6")...), deviceLosses(dir+"dev")...)
		slices.Sort(found)
		if found = slices.Compact(found); len(found) > 0 {
			t.Logf("the kernel of %s counts %s", name, strings.Join(found, ", "))
		}
	}
}

// tellsOfLoss reports whether a counter that is not zero is worth a look.
func tellsOfLoss(name string) bool {
	for _, part := range []string{"Drop", "Discard", "Fail", "Err", "Timeout", "NoRoutes", "NoPorts", "Unknown", "Invalid", "DestUnreachs"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// pairedCounters reads a file of lines of names, each followed by one of their values.
func pairedCounters(path string) (found []string) {
	b, _ := os.ReadFile(path)
	lines := strings.Split(string(b), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for k := 1; k < min(len(names), len(values)); k++ {
			if values[k] != "0" && tellsOfLoss(names[k]) {
				found = append(found, names[0]+names[k]+" "+values[k])
			}
		}
	}
	return found
}

// listedCounters reads a file with one name and value on each line.
func listedCounters(path string) (found []string) {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] != "0" && tellsOfLoss(f[0]) {
			found = append(found, f[0]+" "+f[1])
		}
	}
	return found
}

// deviceLosses reads what the devices did not take or did not send.
func deviceLosses(path string) (found []string) {
	const rxErrors, rxDropped, txErrors, txDropped = 3, 4, 11, 12 // columns
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 17 {
			continue
		}
		for column, what := range map[int]string{rxErrors: "rx errors", rxDropped: "rx dropped", txErrors: "tx errors", txDropped: "tx dropped"} {
			if f[column] != "0" {
				found = append(found, f[0]+" "+what+" "+f[column])
			}
		}
	}
	return found
}
