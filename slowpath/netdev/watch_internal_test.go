package netdev

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStepsOfNeighbourDiscoveryAreNoNotices(t *testing.T) {
	neighbour := func(state uint16) []byte {
		b := make([]byte, 28)
		binary.NativeEndian.PutUint16(b[4:], unix.RTM_NEWNEIGH)
		binary.NativeEndian.PutUint16(b[24:], state)
		return b
	}
	gone := neighbour(unix.NUD_PROBE)
	binary.NativeEndian.PutUint16(gone[4:], unix.RTM_DELNEIGH)
	cases := []struct {
		name string
		head []byte
		want bool
	}{
		{"a neighbour was found", neighbour(unix.NUD_REACHABLE), true},
		{"a neighbour was heard of", neighbour(unix.NUD_STALE), true},
		{"a neighbour was set", neighbour(unix.NUD_PERMANENT), true},
		{"a neighbour did not answer", neighbour(unix.NUD_FAILED), true},
		{"a neighbour is asked for", neighbour(unix.NUD_INCOMPLETE), false},
		{"a neighbour is about to be asked again", neighbour(unix.NUD_DELAY), false},
		{"a neighbour is asked again", neighbour(unix.NUD_PROBE), false},
		{"a neighbour is removed", gone, true},
		{"a message that is cut short", neighbour(unix.NUD_PROBE)[:25], true},
		{"nothing", nil, true},
	}
	for _, c := range cases {
		if got := matters(c.head); got != c.want {
			t.Errorf("%s: notice %v, want %v", c.name, got, c.want)
		}
	}
}
