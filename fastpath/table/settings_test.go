package table_test

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/table"
)

// TestDefaultTimeouts: a connection may be silent for as long as kube-proxy has the kernel
// allow it.
func TestDefaultTimeouts(t *testing.T) {
	s := table.DefaultSettings().Timeouts
	for _, c := range []struct {
		state     string
		got, want time.Duration
	}{
		{"established", time.Duration(s.TCPEstablished), 24 * time.Hour},
		{"closed by one end (CLOSE_WAIT)", time.Duration(s.TCPClosing), time.Hour},
	} {
		if c.got != c.want {
			t.Errorf("%s: forgotten after %s, want %s", c.state, c.got, c.want)
		}
	}
}
