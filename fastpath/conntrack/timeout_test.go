package conntrack

import (
	"testing"
	"time"

	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/table"
)

// The settings of a snapshot are used as they are, and both sides have the same defaults.
func TestDefaultsAreThoseOfTheTables(t *testing.T) {
	settings := table.DefaultSettings()
	if got, want := DefaultTimeouts(), *(*Timeouts)(&settings.Timeouts); got != want {
		t.Errorf("defaults are %+v, those of the tables %+v", got, want)
	}
}

func TestTimeoutChoice(t *testing.T) {
	second := int64(time.Second)
	timeouts := Timeouts{
		TCPHalfOpen: 1 * second, TCPEstablished: 2 * second, TCPClosing: 3 * second, TCPClosed: 4 * second,
		UDPNew: 5 * second, UDP: 6 * second, SCTP: 7 * second,
	}
	const seen, ack, fin, rst = StateSeen, StateSeen | StateACK, StateSeen | StateACK | StateFIN, StateSeen | StateRST
	for _, c := range []struct {
		because  string
		protocol uint8
		fwd, rev State
		seconds  int64
	}{
		{"a SYN waits", packet.ProtocolTCP, seen | StateSYN, 0, 1},
		{"a connection is kept", packet.ProtocolTCP, ack, ack, 2},
		{"one FIN", packet.ProtocolTCP, fin, ack, 3},
		{"two FINs leave a tombstone", packet.ProtocolTCP, fin, fin, 4},
		{"a reset leaves a tombstone", packet.ProtocolTCP, ack, rst, 4},
		{"a question without answer", packet.ProtocolUDP, seen, 0, 5},
		{"a conversation", packet.ProtocolUDP, seen, seen, 6},
		{"an association", packet.ProtocolSCTP, seen, 0, 7},
	} {
		want := uint32((c.seconds*second + 1<<TickShift - 1) >> TickShift)
		if got := timeouts.Timeout(c.protocol, c.fwd, c.rev); got != want {
			t.Errorf("%s: %d ticks, want %d", c.because, got, want)
		}
	}
}

func TestTimeoutBounds(t *testing.T) {
	d := DefaultTimeouts()
	for _, c := range []struct {
		because    string
		configured int64
		want       uint32
	}{
		{"not configured means the default", 0, d.Timeout(packet.ProtocolSCTP, 0, 0)},
		{"negative means the default", -1, d.Timeout(packet.ProtocolSCTP, 0, 0)},
		{"a nanosecond is a tick", 1, 1},
		{"forever is two years", 1<<63 - 1, maxTicks},
	} {
		timeouts := Timeouts{SCTP: c.configured}
		if got := timeouts.Timeout(packet.ProtocolSCTP, 0, 0); got != c.want {
			t.Errorf("%s: %d ticks, want %d", c.because, got, c.want)
		}
	}
}

func TestExpired(t *testing.T) {
	timeouts := Timeouts{UDP: 10 << TickShift}
	for _, c := range []struct {
		because       string
		fwd, rev, now uint32
		want          bool
	}{
		{"just seen", 100, 100, 100, false},
		{"ten ticks may be nine and a bit", 100, 100, 110, false},
		{"eleven are at least ten", 100, 100, 111, true},
		{"a reply counts as well", 100, 105, 111, false},
		{"a request counts as well", 105, 100, 111, false},
		{"a clock that is behind expires nothing", 100, 100, 90, false},
		{"ticks wrap around", 0xfffffffe, 0xfffffff0, 8, false},
		{"ticks wrap around, and the flow is idle", 0xfffffffe, 0xfffffff0, 9, true},
		{"the later of the two across the wrap", 0xfffffffe, 3, 12, false},
	} {
		f := Flow{Tuple: Tuple{Protocol: packet.ProtocolUDP}, LastSeen: c.fwd, State: StateSeen}
		r := Flow{LastSeen: c.rev, State: StateSeen}
		if got := timeouts.Expired(&f, &r, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.because, got, c.want)
		}
	}
}
