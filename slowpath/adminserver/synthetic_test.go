package adminserver

import (
	"net/netip"
	"testing"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/fastpath/packet"
)

func TestSyntheticPacketsParse(t *testing.T) {
	pairs := map[string][2]netip.AddrPort{
		"IPv4": {netip.MustParseAddrPort("10.244.1.5:50000"), netip.MustParseAddrPort("10.96.0.10:80")},
		"IPv6": {netip.MustParseAddrPort("[fd00::5]:50000"), netip.MustParseAddrPort("[fd00:10:96::10]:80")},
	}
	for family, pair := range pairs {
		for _, protocol := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
			frame := synthetic(pair[0], pair[1], protocol)
			var p packet.Packet
			if o := p.Parse(frame); o != packet.OK {
				t.Errorf("%s %s: outcome %v", family, protocol, o)
				continue
			}
			if p.Src.Netip() != pair[0].Addr() || p.SrcPort != pair[0].Port() || p.Dst.Netip() != pair[1].Addr() || p.DstPort != pair[1].Port() ||
				p.Protocol != uint8(protocol) || p.End != len(frame) || p.TTL != startTTL {
				t.Errorf("%s %s: parsed as %+v", family, protocol, p)
			}
			if opens := p.Flags == packet.FlagSYN; opens != (protocol == model.TCP) {
				t.Errorf("%s %s: TCP flags %#x", family, protocol, p.Flags)
			}
			if cap(frame) < packet.MaxAnswer {
				t.Errorf("%s %s: room for %d bytes, an answer may need %d", family, protocol, cap(frame), packet.MaxAnswer)
			}
		}
	}
}
