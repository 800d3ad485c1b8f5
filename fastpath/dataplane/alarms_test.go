package dataplane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/police"
	"lace-cni.io/lace/xdp"
)

func newAlarms() (*alarms, *bytes.Buffer) {
	var said bytes.Buffer
	return &alarms{log: slog.New(slog.NewTextHandler(&said, nil))}, &said
}

// An alarm is raised at 80 %, stays while it is 70 % or more, and says so once each time.
func TestAlarmHysteresis(t *testing.T) {
	for alarm, full := range map[counter.Alarm]func(float64) conntrack.Fill{
		counter.AlarmTable:      func(x float64) conntrack.Fill { return conntrack.Fill{Flows: x} },
		counter.AlarmHalfOpen:   func(x float64) conntrack.Fill { return conntrack.Fill{HalfOpen: x} },
		counter.AlarmUnanswered: func(x float64) conntrack.Fill { return conntrack.Fill{Unanswered: x} },
		counter.AlarmShare:      func(x float64) conntrack.Fill { return conntrack.Fill{Share: x, Port: 9} },
	} {
		t.Run(alarm.String(), func(t *testing.T) {
			a, said := newAlarms()
			for i, c := range []struct {
				full float64
				want bool
			}{{0.1, false}, {0.79, false}, {0.8, true}, {0.95, true}, {0.75, true}, {0.7, true}, {0.69, false}, {0.79, false}, {0.81, true}} {
				a.look(full(c.full), nil)
				if got := a.bits() == 1<<alarm; got != c.want {
					t.Errorf("look %d, %.2f full: alarms %b, want it raised: %v", i, c.full, a.bits(), c.want)
				}
			}
			for text, want := range map[string]int{"nearly full: " + alarm.String(): 2, "not full any more: " + alarm.String(): 1} {
				if got := strings.Count(said.String(), text); got != want {
					t.Errorf("%q is said %d times, want %d:\n%s", text, got, want, said)
				}
			}
		})
	}
}

// The alarm of the police names the port of which most was dropped since the last look, and
// goes when nothing was dropped for a while. What an earlier process left is no news.
func TestAlarmOfPolice(t *testing.T) {
	a, said := newAlarms()
	policed := func(port uint16, n uint64) xdp.Policed {
		return xdp.Policed{Port: port, Packets: [police.Asks]uint64{police.New: n}}
	}
	a.look(conntrack.Fill{}, []xdp.Policed{policed(3, 100)})
	if a.bits() != 0 {
		t.Errorf("alarms %b at the first look", a.bits())
	}
	a.look(conntrack.Fill{}, []xdp.Policed{policed(3, 105), policed(4, 50)})
	if a.bits() != 1<<counter.AlarmPoliced || a.policed != 4 {
		t.Errorf("alarms %b, port %d; want the police's, port 4", a.bits(), a.policed)
	}
	for i := range calmFor {
		if a.bits() == 0 {
			t.Errorf("the alarm is gone after %d looks", i)
		}
		a.look(conntrack.Fill{}, []xdp.Policed{policed(3, 105), policed(4, 50)})
	}
	if a.bits() != 0 {
		t.Errorf("alarms %b after %d quiet looks", a.bits(), calmFor)
	}
	a.look(conntrack.Fill{}, []xdp.Policed{policed(4, 10)}) // another device has the id now
	if a.bits() != 0 {
		t.Errorf("alarms %b for fewer packets than before", a.bits())
	}
	if n := strings.Count(said.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, said)
	}
}
