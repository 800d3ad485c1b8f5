package agent

import (
	"fmt"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/counter"
)

// alarms are the Problems about what fills up.
func (o *observer) alarms(t *counter.Totals) (out []model.Problem) {
	for alarm := range counter.Alarms {
		if t.Raised(alarm) {
			out = append(out, o.alarm(t, alarm))
		}
	}
	return out
}

func (o *observer) alarm(t *counter.Totals, a counter.Alarm) model.Problem {
	p := model.Problem{Kind: "Node", Object: o.config.NodeName}
	ofPort := func(g counter.Gauge) { p.Kind, p.Object = "Port", o.device(uint16(t.Gauges[g])) }
	switch a {
	case counter.AlarmTable:
		p.Reason = "FlowTableNearlyFull"
		p.Message = fmt.Sprintf("the flow table holds %d flows of %d; when it is full, new ones are refused: raise --flow-slots of lace-fastpath", t.Gauges[counter.Flows], t.Gauges[counter.FlowCapacity])
	case counter.AlarmHalfOpen:
		p.Reason = "HalfOpenNearlyFull"
		p.Message = fmt.Sprintf("%d TCP connections are half-open, near the bound: a SYN flood from many ports, or backends that do not answer", t.Gauges[counter.HalfOpen])
	case counter.AlarmUnanswered:
		p.Reason = "UnansweredNearlyFull"
		p.Message = fmt.Sprintf("%d datagram flows are unanswered, near the bound: floods from many ports, or backends that do not answer", t.Gauges[counter.Unanswered])
	case counter.AlarmShare:
		ofPort(counter.FullestPort)
		p.Reason = "PortShareNearlyFull"
		p.Message = "the port has nearly its share of the flow table, of half-open connections or of unanswered flows; beyond that its own new flows are refused or take the place of its oldest unanswered ones, others are not concerned"
	case counter.AlarmPoliced:
		ofPort(counter.PolicedPort)
		p.Reason = "PortPoliced"
		p.Message = "the port asks for more decisions than its share while the workers are busy, and is held back; others are not: lace get drops counts its packets"
	}
	return p
}

// device is the name of a port's device.
func (o *observer) device(id uint16) string {
	if state := o.publisher.State(); state != nil {
		for _, p := range state.Attachments.Ports {
			if p.ID == id {
				return p.Device
			}
		}
	}
	return fmt.Sprintf("port %d", id)
}
