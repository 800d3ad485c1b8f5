package adminserver

import (
	"fmt"
	"net/netip"
	"time"

	"lace-cni.io/lace/fastpath/blackhole"
	"lace-cni.io/lace/fastpath/counter"
	"lace-cni.io/lace/fastpath/packet"
	"lace-cni.io/lace/fastpath/reason"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// lostAs says by which reason the packets of a black hole are counted.
var lostAs = map[blackhole.Kind]reason.Reason{
	blackhole.Untold: reason.TooBig, blackhole.Unheeded: reason.PacketTooBig,
}

// nameHoles says of drops by Go whose packets they were.
func (s *Server) nameHoles(drops []api.Drop, totals *counter.Totals) {
	if totals == nil {
		return
	}
	devices := s.devices()
	now, wall := monotonic(), time.Now()
	for _, h := range blackhole.Current(totals.Holes, now) {
		for i := range drops {
			if d := &drops[i]; d.Where == "go" && d.Reason == lostAs[h.Kind].String() {
				d.BlackHoles = append(d.BlackHoles, blackHoleOf(&h, devices, wall.Add(time.Duration(h.Seen-now))))
			}
		}
	}
}

func blackHoleOf(h *blackhole.Hole, devices map[uint16]string, seen time.Time) api.BlackHole {
	t := &h.Tuple
	return api.BlackHole{
		Protocol: packet.ProtocolName(t.Protocol), Network: uint32(t.Network),
		Source:      netip.AddrPortFrom(t.Src.Netip(), t.SrcPort).String(),
		Destination: netip.AddrPortFrom(t.Dst.Netip(), t.DstPort).String(),
		In:          deviceOf(devices, h.In), Device: deviceOf(devices, h.Out),
		MTU: h.MTU, Longest: h.Longest, Packets: h.Packets, Seen: seen.UTC(),
	}
}

// devices of the ports that there are, by id.
func (s *Server) devices() map[uint16]string {
	out := make(map[uint16]string)
	if state := s.node.State(); state != nil {
		for _, p := range state.Attachments.Ports {
			out[p.ID] = p.Device
		}
	}
	return out
}

func deviceOf(devices map[uint16]string, id uint16) string {
	if name, known := devices[id]; known {
		return name
	}
	return fmt.Sprintf("port %d", id)
}
