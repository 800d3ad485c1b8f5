package metrics

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/police"
)

func alarms(r *Reading, to send) {
	if r.Go == nil {
		return
	}
	for a := range counter.Alarms {
		v := 0.0
		if r.Go.Raised(a) {
			v = 1
		}
		to(v, a.String())
	}
}

// policed bears the device and not the port's id: ids mean something only to one node's
// tables.
func policed(r *Reading, to send) {
	if r.Kernel == nil {
		return
	}
	for i := range r.Kernel.Policed {
		p := &r.Kernel.Policed[i]
		device := r.device(p.Port)
		for ask := range police.Ask(police.Asks) {
			to(float64(p.Packets[ask]), device, ask.String())
		}
	}
}

// device names a port, by its number when it has gone. Prometheus takes UTF-8 alone, and the
// kernel any bytes as a name: one that is none has its number, too, since two of them may look
// alike. No device has a blank in its name.
func (r *Reading) device(id uint16) string {
	switch name, known := r.Devices[id]; {
	case !known:
		return fmt.Sprintf("port %d", id)
	case !utf8.ValidString(name):
		return fmt.Sprintf("%s (port %d)", strings.ToValidUTF8(name, "\ufffd"), id)
	default:
		return name
	}
}
