package servicehealth

import (
	"testing"
	"time"
)

// TestRetry: how often a port that is taken is tried, unless a test is in a hurry.
func TestRetry(t *testing.T) {
	if got := New(Config{Node: "n1"}).config.Retry; got != 5*time.Second {
		t.Errorf("every %s, want 5 s", got)
	}
}
