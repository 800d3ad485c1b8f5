package agent

import (
	"fmt"
	"net/netip"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/counter"
)

// blackHoles are the Problems about ports that packets do not fit, one for each: the flow that
// was seen last is the example.
func (o *observer) blackHoles(t *counter.Totals, now int64) (out []model.Problem) {
	named := map[string]bool{}
	for _, h := range blackhole.Current(t.Holes, now) {
		device := o.device(h.Out)
		if named[device] {
			continue
		}
		named[device] = true
		out = append(out, model.Problem{Kind: "Port", Object: device, Reason: "BlackHole", Message: blackHole(&h)})
	}
	return out
}

func blackHole(h *blackhole.Hole) string {
	why := "cannot be told"
	if h.Kind == blackhole.Unheeded {
		why = "is told and does not listen"
	}
	t := &h.Tuple
	return fmt.Sprintf("packets of up to %d bytes from %s to %s do not fit its MTU of %d and vanish, for their sender %s: align the MTUs, or let ICMP through to the sender; lace get drops names the flows",
		h.Longest, netip.AddrPortFrom(t.Src.Netip(), t.SrcPort), netip.AddrPortFrom(t.Dst.Netip(), t.DstPort), h.MTU, why)
}
