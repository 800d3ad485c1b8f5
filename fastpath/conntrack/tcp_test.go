package conntrack

import (
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/packet"
)

// play notes packets such as "c:SYN s:SYN,ACK c:ACK", c from the client and s from the
// server, on a flow in a table, and gives both directions' states.
func play(t *testing.T, packets string) (fwd, rev State) {
	t.Helper()
	table := newTestTable(t, 8)
	f, r := tcp4.connect(1, 1000, 1)
	f.State = 0
	mustInsert(t, table, f, r, 1)
	flags := map[string]uint8{"SYN": packet.FlagSYN, "ACK": packet.FlagACK, "FIN": packet.FlagFIN, "RST": packet.FlagRST, "PSH": packet.FlagPSH}
	for p := range strings.FieldsSeq(packets) {
		side, words, _ := strings.Cut(p, ":")
		var b uint8
		for w := range strings.SplitSeq(words, ",") {
			if flags[w] == 0 {
				t.Fatalf("packet %q: no flag %q", p, w)
			}
			b |= flags[w]
		}
		direction := map[string]*Flow{"c": f, "s": r}[side]
		if !table.Touch(direction, StateOf(b), 2) {
			t.Fatalf("packet %q: flow is gone", p)
		}
	}
	return f.State, r.State
}

func TestTCPState(t *testing.T) {
	const open = "c:SYN s:SYN,ACK c:ACK "
	for _, c := range []struct {
		because string
		packets string
		want    TCP
	}{
		{"a SYN alone opens nothing", "c:SYN", HalfOpen},
		{"a repeated SYN changes nothing", "c:SYN c:SYN", HalfOpen},
		{"the server's answer needs the client's", "c:SYN s:SYN,ACK", HalfOpen},
		{"an ACK that the server never asked for opens nothing", "c:SYN c:ACK", HalfOpen},
		{"the three-way handshake is done", open, Established},
		{"data keeps it open", open + "c:PSH,ACK s:ACK s:PSH,ACK c:ACK", Established},
		{"a SYN on a live connection changes nothing", open + "c:SYN", Established},
		{"the server's SYN was carried by the lane or another path, its ACK is enough", "c:SYN c:ACK s:ACK", Established},
		{"the client wants to end", open + "c:FIN,ACK", Closing},
		{"the server's ACK of the FIN does not end it: it may still send", open + "c:FIN,ACK s:ACK s:PSH,ACK", Closing},
		{"the server wants to end", open + "s:FIN,ACK c:ACK", Closing},
		{"both have ended", open + "c:FIN,ACK s:FIN,ACK c:ACK", Closed},
		{"late data of an ended connection does not open it", open + "c:FIN,ACK s:FIN,ACK c:ACK s:PSH,ACK c:PSH,ACK", Closed},
		{"the server refuses", "c:SYN s:RST,ACK", Closed},
		{"the client resets", open + "c:RST", Closed},
		{"the server resets", open + "s:RST,ACK", Closed},
		{"data that was under way to the one who reset revives nothing", open + "s:RST c:PSH,ACK", Closed},
		{"who talks on has not reset: the RST was forged", open + "s:RST s:PSH,ACK", Established},
		{"the client's forged RST is belied by the client", open + "c:RST c:ACK", Established},
		{"a second RST counts again", open + "s:RST s:ACK s:RST", Closed},
		{"a forged RST while closing leaves it closing", open + "c:FIN,ACK s:RST s:ACK", Closing},
		{"an RST does not undo both FINs", open + "c:FIN,ACK s:FIN,ACK s:RST s:ACK", Closed},
		{"a new SYN does not take an RST back", open + "c:RST c:SYN", Closed},
	} {
		if got := TCPState(play(t, c.packets)); got != c.want {
			t.Errorf("%s: %s: state is %v, want %v", c.because, c.packets, got, c.want)
		}
	}
}

func TestStateOf(t *testing.T) {
	for _, c := range []struct {
		because string
		flags   uint8
		want    State
	}{
		{"a packet without flags was seen", 0, StateSeen},
		{"a SYN-ACK is a SYN", packet.FlagSYN | packet.FlagACK, StateSeen | StateSYN},
		{"an ACK is one", packet.FlagACK | packet.FlagPSH, StateSeen | StateACK},
		{"a FIN carries an ACK", packet.FlagFIN | packet.FlagACK, StateSeen | StateACK | StateFIN},
		{"an RST says nothing else", packet.FlagRST | packet.FlagACK | packet.FlagFIN, StateSeen | StateRST},
	} {
		if got := StateOf(c.flags); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.because, got, c.want)
		}
	}
}

func TestReopens(t *testing.T) {
	const open = "c:SYN s:SYN,ACK c:ACK "
	timeouts := DefaultTimeouts()
	ticks := func(ns int64) uint32 { return Tick(ns) + 3 }
	for _, c := range []struct {
		because string
		packets string
		idle    uint32
		want    bool
	}{
		{"a SYN retransmitted keeps its backend", "c:SYN", 10, false},
		{"a SYN on a live connection is forged or confused", open, 10, false},
		{"after one FIN the connection still lives", open + "c:FIN,ACK", 10, false},
		{"after both FINs the port is used again", open + "c:FIN,ACK s:FIN,ACK", 1, true},
		{"after a reset the port is used again", open + "c:RST", 1, true},
		{"after a refusal the client tries again", "c:SYN s:RST,ACK", 1, true},
		{"a forged RST that was belied does not move the connection", open + "c:RST c:ACK", 1, false},
		{"an expired connection that was not swept yet is over", open, ticks(timeouts.TCPEstablished), true},
		{"half-open for too long is over", "c:SYN", ticks(timeouts.TCPHalfOpen), true},
	} {
		f, r := Flow{Tuple: Tuple{Protocol: packet.ProtocolTCP}, LastSeen: 100}, Flow{LastSeen: 100}
		f.State, r.State = play(t, c.packets)
		if got := timeouts.Reopens(&f, &r, 100+c.idle); got != c.want {
			t.Errorf("%s: Reopens is %v, want %v", c.because, got, c.want)
		}
	}
}
