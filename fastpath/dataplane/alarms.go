package dataplane

import (
	"log/slog"

	"lace-cni.io/lace/fastpath/conntrack"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/xdp"
)

// An alarm is raised from 80 % on and stays until less than 70 % is full, so that it does
// not come and go with every flow. That of the police is raised while packets are dropped,
// and for some looks more.
const (
	raiseAt = 0.8
	clearAt = 0.7
	calmFor = 5 // looks
)

// alarms say what fills up. It belongs to the goroutine that looks, once a second.
type alarms struct {
	log    *slog.Logger
	raised [counter.Alarms]bool

	fullest uint16 // port that has most of its share
	policed uint16 // port of which most packets were dropped lately
	dropped map[uint16]uint64
	quiet   int // looks without a drop
}

// look judges the table and the police anew, and logs what has changed.
func (a *alarms) look(f conntrack.Fill, policed []xdp.Policed) {
	a.fullest = f.Port
	a.level(counter.AlarmTable, f.Flows, "new flows are refused when it is full: raise --flow-slots")
	a.level(counter.AlarmHalfOpen, f.HalfOpen, "a SYN flood, or backends that do not answer")
	a.level(counter.AlarmUnanswered, f.Unanswered, "datagrams that nobody answers, to very many ports")
	a.level(counter.AlarmShare, f.Share, "the port's own new flows are refused when it is full, others are not", "port", f.Port)
	a.police(policed)
}

// level raises or clears an alarm by how full something is, in parts of one.
func (a *alarms) level(alarm counter.Alarm, full float64, means string, more ...any) {
	args := append([]any{"full", percent(full)}, more...)
	switch {
	case !a.raised[alarm] && full >= raiseAt:
		a.raised[alarm] = true
		a.log.Warn("nearly full: "+alarm.String()+": "+means, args...)
	case a.raised[alarm] && full < clearAt:
		a.raised[alarm] = false
		a.log.Info("not full any more: "+alarm.String(), args...)
	}
}

func percent(part float64) int { return int(100*part + 0.5) }

// police raises the alarm when packets were dropped since the last look.
func (a *alarms) police(ports []xdp.Policed) {
	worst, most := uint16(0), uint64(0)
	now := make(map[uint16]uint64, len(ports))
	for i := range ports {
		p := &ports[i]
		now[p.Port] = p.Sum()
		// One that began anew has fewer than before.
		if n := now[p.Port] - min(a.dropped[p.Port], now[p.Port]); n > most && a.dropped != nil {
			worst, most = p.Port, n
		}
	}
	a.dropped = now
	raised := &a.raised[counter.AlarmPoliced]
	if most > 0 {
		a.policed, a.quiet = worst, 0
		if !*raised {
			*raised = true
			a.log.Warn("a port asks for more than its share and is held back; lace get drops counts its packets", "port", worst, "packets", most)
		}
		return
	}
	if a.quiet++; *raised && a.quiet >= calmFor {
		*raised = false
		a.log.Info("no port is held back any more")
	}
}

// bits are the alarms as the gauge has them.
func (a *alarms) bits() (b uint64) {
	for alarm, raised := range a.raised {
		if raised {
			b |= 1 << alarm
		}
	}
	return b
}

// alarm looks at what fills up and shows it.
func (n *node) alarm() {
	a := &n.alarms
	a.log = n.config.Log
	a.look(n.flows.Fill(), n.objects.Policed())
	n.counters.Set(counter.Unanswered, uint64(n.flows.Unanswered()))
	n.counters.Set(counter.Evicted, n.flows.HalfOpenEvicted()+n.flows.UnansweredEvicted())
	n.counters.Set(counter.FullestPort, uint64(a.fullest))
	n.counters.Set(counter.PolicedPort, uint64(a.policed))
	n.counters.Set(counter.PuntLimit, uint64(n.governor.Limits().PerSecond[0]))
	n.counters.Set(counter.RaisedAlarms, a.bits())
}
