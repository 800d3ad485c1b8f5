package rig

import (
	"fmt"
	"strings"

	"lace-cni.io/lace/bench/lab"
	"lace-cni.io/lace/bench/suite/rings"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/xdp"
)

// Drops are packets that Lace has dropped or refused on the first node, by reason.
type Drops [reason.Count]uint64

// Drops reads them, of the kernel's programs and of Go. They are zero in other modes.
func (r *Rig) Drops() (d Drops) {
	if r.Mode.Kind != Lace && r.Mode.Kind != Rings {
		return d
	}
	n := r.lab.Node("n1")
	if c, err := counter.Open(n.StatePath(rings.CounterFile)); err == nil {
		totals := c.Totals()
		c.Close()
		for i, t := range totals.Reasons {
			d[i] += t.Packets
		}
	}
	if k, err := xdp.OpenCounters(lab.BPFDir(n.StatePath(""))); err == nil {
		if totals, err := k.Counters(); err == nil {
			for i, t := range totals.Reasons {
				d[i] += t.Packets
			}
		}
		k.Close()
	}
	for i := range d {
		if c := reason.Reason(i).Class(); c != reason.ClassDrop && c != reason.ClassAnswer {
			d[i] = 0
		}
	}
	return d
}

// Since says which reasons have grown since an earlier reading; empty: none.
func (d Drops) Since(before Drops) string {
	var out []string
	for i := range d {
		if n := d[i] - before[i]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, reason.Reason(i)))
		}
	}
	return strings.Join(out, ", ")
}
