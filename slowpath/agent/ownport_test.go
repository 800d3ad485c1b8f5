package agent

import (
	"slices"
	"testing"
)

// TestPortsOfTheAgent: those that somebody may ask from elsewhere.
func TestPortsOfTheAgent(t *testing.T) {
	for _, c := range []struct {
		health, metrics string
		want            []uint16
	}{
		{DefaultHealthAddr, DefaultMetricsAddr, []uint16{10256}},
		{":10256", "[::]:10249", []uint16{10256, 10249}},
		{"[::1]:10256", "localhost:10249", nil},
		{"172.30.0.11:9000", "172.30.0.11:9000", []uint16{9000}},
		{"", "nonsense", nil},
		{"127.0.0.1:0", "0.0.0.0:0", nil},
	} {
		if got := (&Config{HealthAddr: c.health, MetricsAddr: c.metrics}).ports(); !slices.Equal(got, c.want) {
			t.Errorf("%q and %q: %v, want %v", c.health, c.metrics, got, c.want)
		}
	}
}
