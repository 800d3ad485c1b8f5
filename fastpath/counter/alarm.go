package counter

// Alarm is something that fills up. Which are raised is in the gauge Alarms, a bit each.
// Numbers may be appended, never reused.
type Alarm uint8

const (
	AlarmTable      Alarm = iota // the flow table
	AlarmHalfOpen                // the bound of half-open TCP connections
	AlarmUnanswered              // the bound of datagram flows that nobody has answered
	AlarmShare                   // a port's share of any of these; gauge FullestPort says whose
	AlarmPoliced                 // a port is held back; gauge PolicedPort says which

	Alarms // number of alarms
)

var alarmNames = [Alarms]string{"flow-table", "half-open", "unanswered", "port-share", "policed"}

// String is the word used in metrics and logs.
func (a Alarm) String() string {
	if a >= Alarms {
		return "unknown"
	}
	return alarmNames[a]
}

// Raised reports whether an alarm is raised.
func (t *Totals) Raised(a Alarm) bool { return t.Gauges[RaisedAlarms]>>a&1 != 0 }
